package gateway

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/sealed"
)

// vault is where the secrets are that one configuration refers to.
type vault struct {
	environ config.Environ
	stored  *sealed.Folder // nil where none are stored
	// files are the contents, by path, of what backends are identified by, where
	// Follow may need them; nil where nothing can be followed.
	files map[string][]byte
	// settled is set while only documents of the store are followed: what is in files
	// is not looked at again.
	settled bool
}

// openVault returns the vault of f. What previous, which may be nil, has read
// is remembered.
func (g *Gateway) openVault(f *config.File, previous *snapshot) (*vault, error) {
	stored, err := f.AdminAPI.Secrets(g.environ)
	v := &vault{environ: g.environ, stored: stored}
	if f.AdminAPI.Store == "redis" {
		v.files = make(map[string][]byte)
		if previous != nil {
			maps.Copy(v.files, previous.vault.files)
		}
	}
	return v, err
}

// file returns the content of a file that identifies somebody.
func (v *vault) file(path string) ([]byte, error) {
	if data, known := v.files[path]; known && v.settled {
		return data, nil
	}
	data, err := os.ReadFile(path)
	if err == nil && v.files != nil {
		v.files[path] = data
	}
	return data, err
}

// tidy forgets the files that f does not name.
func (v *vault) tidy(f *config.File) {
	if len(v.files) == 0 {
		return
	}
	named := make(map[string]bool, len(v.files))
	for i := range f.Tenants {
		for _, b := range f.Tenants[i].Backends {
			for _, path := range []string{b.CAFile, b.IssuerCAFile, b.ClientCertFile, b.ClientKeyFile} {
				if path != "" {
					named[path] = true
				}
			}
		}
	}
	maps.DeleteFunc(v.files, func(path string, _ []byte) bool { return !named[path] })
}

// secret resolves a reference of a tenant's documents inside the tenant's grant.
// Its errors name the reference, never a value.
func (v *vault) secret(t *config.Tenant, ref config.SecretRef) (value string, err error) {
	switch {
	case ref.Env != "":
		value, err = v.variable(t.Secrets, ref.Env)
	case t.Secrets.Stored:
		value, err = v.storedSecret(t.ID, ref.Ref)
	default:
		value, err = fileSecret(t.Secrets, ref.Ref)
	}
	if err != nil {
		return "", err
	}
	if value = strings.TrimRight(value, "\r\n"); value == "" {
		return "", fmt.Errorf("secret %s%s is empty", ref.Env, ref.Ref)
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		return "", fmt.Errorf("secret %s%s has a line break or NUL", ref.Env, ref.Ref)
	}
	return value, nil
}

func (v *vault) variable(grant config.Grant, name string) (string, error) {
	if !grant.AnyEnv && (grant.EnvPrefix == "" || !strings.HasPrefix(name, grant.EnvPrefix)) {
		return "", fmt.Errorf("environment variable %s is not granted", name)
	}
	value, ok := v.environ(name)
	if !ok {
		return "", fmt.Errorf("environment variable %s is not set", name)
	}
	return value, nil
}

// storedSecret returns a secret of the tenant's own.
func (v *vault) storedSecret(tenant, name string) (string, error) {
	if v.stored == nil || !config.IsTenantID(tenant) || !sealed.IsName(name) {
		return "", fmt.Errorf("secret %s is not stored", name)
	}
	value, err := v.stored.Open(tenant, name)
	switch {
	case errors.Is(err, sealed.ErrAbsent):
		return "", fmt.Errorf("secret %s is not stored", name)
	case err != nil:
		return "", fmt.Errorf("secret %s cannot be opened: %s", name, strings.TrimPrefix(err.Error(), "sealed: "))
	}
	return value, nil
}

func fileSecret(grant config.Grant, name string) (string, error) {
	if grant.Dir == "" {
		return "", errors.New("no secrets folder is granted")
	}
	root, err := os.OpenRoot(grant.Dir)
	if err != nil {
		return "", errors.New("the secrets folder cannot be opened")
	}
	defer root.Close()
	b, err := root.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("secret %s cannot be read", name)
	}
	return string(b), nil
}
