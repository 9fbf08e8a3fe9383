package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/sealed"
)

// secretsAmiss warns of the stored secrets that documents of f, the gateway file
// at path, refer to and that do not open. Of those that are missing config warns.
func secretsAmiss(path string, f *config.File) []config.Mistake {
	secrets, err := f.AdminAPI.Secrets(nil)
	if err != nil { // it was read just before
		return []config.Mistake{{File: path, Path: "adminApi.secretsKey", What: err.Error(), Instead: "see that it is there and stays the same", Warning: true}}
	}
	if secrets == nil {
		return nil
	}
	var warnings []config.Mistake
	for i := range f.Tenants {
		t := &f.Tenants[i]
		if !t.Secrets.Stored {
			continue
		}
		looked := make(map[string]bool)
		for ref := range t.SecretRefs() {
			if ref.Ref == "" || looked[ref.Ref] {
				continue
			}
			looked[ref.Ref] = true
			_, err := secrets.Open(t.ID, ref.Ref)
			if err == nil || errors.Is(err, sealed.ErrAbsent) {
				continue
			}
			file := t.File
			if file == "" {
				file = path
			}
			warnings = append(warnings, config.Mistake{
				File: file, Path: "secrets", Warning: true,
				What:    fmt.Sprintf("the stored secret %s of tenant %s cannot be used, %s", ref.Ref, t.ID, strings.TrimPrefix(err.Error(), "sealed: ")),
				Instead: fmt.Sprintf("write the key that has sealed it into adminApi.secretsKeys too, or set it again with ahp-gateway tenant secret set %s %s; until then calls that need it fail", t.ID, ref.Ref),
			})
		}
	}
	return warnings
}
