package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/admin"
)

// resealed is the JSON document of secret reseal --all. Its lists are never null.
type resealed struct {
	// Resealed are the tenants with secrets that were under another key.
	Resealed []string `json:"resealed"`
	// Failed are those some of whose secrets are under another key still, or do
	// not open.
	Failed []string `json:"failed"`
	// Tenants is how many were looked at.
	Tenants int `json:"tenants"`
}

// resealAll seals the secrets of all managed tenants that another key has sealed.
func (p program) resealAll(ctx context.Context, c *adminClient, o *tenantOptions) error {
	var all admin.Page
	err := within(ctx, o, func(ctx context.Context) (err error) {
		all, err = p.everyTenant(ctx, c)
		return err
	})
	if err != nil {
		return err
	}
	if all.LastGood {
		return errors.New("the last good configuration is served, and nothing can be changed; correct the gateway file first")
	}
	came := resealed{Resealed: []string{}, Failed: []string{}}
	for _, t := range all.Tenants {
		if !t.Managed {
			continue
		}
		var changed bool
		err := within(ctx, o, func(ctx context.Context) (err error) {
			changed, err = p.resealOne(ctx, c, t.ID)
			return err
		})
		var none noSecrets
		if ctx.Err() != nil || errors.As(err, &none) { // the same for every tenant
			return cmp.Or(ctx.Err(), err)
		}
		came.Tenants++
		if changed {
			came.Resealed = append(came.Resealed, t.ID)
		}
		if err != nil {
			fmt.Fprintf(p.stderr, "tenant %s: %v\n", printable(t.ID), err)
			came.Failed = append(came.Failed, t.ID)
		}
	}
	if o.format == "json" {
		err = p.writeJSON(came)
	} else {
		err = write(p.stdout, fmt.Appendf(nil, "tenants looked at: %d; encrypted under the first key just now: those of %d\n", came.Tenants, len(came.Resealed)))
	}
	if err == nil && len(came.Failed) > 0 {
		err = fmt.Errorf("tenants with secrets that are not under the first key: %d; keep the other keys, see to these and run it again", len(came.Failed))
	}
	return err
}

// within calls f with the time that --timeout gives.
func within(ctx context.Context, o *tenantOptions, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return f(ctx)
}

// noSecrets says that the gateway stores none, for nobody.
type noSecrets struct{ error }

// resealOne seals a tenant's secrets if one of them is under another key, and
// reports whether that was done.
func (p program) resealOne(ctx context.Context, c *adminClient, id string) (changed bool, err error) {
	answer, err := c.send(ctx, http.MethodGet, "tenants/"+segment(id)+"/secrets", "", nil, "")
	if err != nil {
		return false, err
	}
	if refused := p.refusal(answer, ""); refused != nil {
		if problem, err := answer.problem(); err == nil && strings.HasSuffix(problem.Type, ":no-secrets") {
			return false, noSecrets{refused}
		}
		return false, refused
	}
	var list admin.SecretList
	if err := answer.read(&list); err != nil {
		return false, err
	}
	if i := slices.IndexFunc(list.Secrets, func(s admin.Secret) bool { return s.Unusable }); i >= 0 {
		return false, fmt.Errorf("secret %s does not open; write the key that has sealed it into adminApi.secretsKeys too, set it again, or remove it", printable(list.Secrets[i].Name))
	}
	if !slices.ContainsFunc(list.Secrets, func(s admin.Secret) bool { return s.Outdated }) {
		return false, nil
	}
	var r admin.Result
	err = p.secret(ctx, c, http.MethodPost, segment(id)+"/secrets:reseal", "application/json", []byte("{}"), &r)
	return err == nil, err
}
