package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/ahp-gateway/ahp-gateway/admin"
	"github.com/ahp-gateway/ahp-gateway/sealed"
)

func (p program) secretCommand(o *tenantOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Set, list and remove the stored secrets of a tenant",
		Long: `Sets the secrets that a tenant's documents refer to by tokenRef, valueRef and
clientSecretRef where the tenant has secrets: {stored: true}. The gateway stores
them encrypted under adminApi.secretsKey, and tells their values nobody.`,
		Args: cobra.ArbitraryArgs,
		RunE: needsCommand,
	}
	set := &cobra.Command{
		Use:   "set TENANT NAME",
		Short: "Set a secret to what standard input holds",
		Long: `Sets a secret to what standard input holds, without a line break at its end. It
is used from the next request on. It cannot be given as an argument, which others
on the machine could read.`,
		Example: `  ahp-gateway tenant secret set acme policy-token < token`,
		Args:    theseArguments("TENANT", "NAME"),
		RunE:    tenantAction(o, p.setSecret),
	}
	list := &cobra.Command{
		Use:   "list TENANT",
		Short: "List the names of a tenant's secrets",
		Args:  theseArguments("TENANT"),
		RunE:  tenantAction(o, p.listSecrets),
	}
	remove := &cobra.Command{
		Use:   "remove TENANT NAME",
		Short: "Remove a secret; backend calls that need it fail then",
		Args:  theseArguments("TENANT", "NAME"),
		RunE:  tenantAction(o, p.removeSecret),
	}
	reseal := &cobra.Command{
		Use:   "reseal (TENANT | --all)",
		Short: "Encrypt secrets under the first of adminApi.secretsKeys",
		Long: `Encrypts the secrets of a tenant under the first of adminApi.secretsKeys, so that
the other keys can be taken away once that is done for every tenant. With --all it
looks at the secrets of all tenants that the API manages, encrypts those that are
under another key, and goes on where that fails for one. It can be run again.`,
		Example: `  ahp-gateway tenant secret reseal --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.all && len(args) == 0 {
				return nil
			}
			if o.all {
				return usage("--all is for every tenant; leave %s out, or --all", quote(args[0]))
			}
			if len(args) == 0 {
				return usage("needs TENANT or --all")
			}
			return theseArguments("TENANT")(cmd, args)
		},
		RunE: tenantAction(o, p.resealSecrets),
	}
	reseal.Flags().BoolVar(&o.all, "all", false, "for every tenant that the API manages")
	cmd.AddCommand(set, list, remove, reseal)
	return cmd
}

// secret calls the API about the secrets of a tenant.
func (p program) secret(ctx context.Context, c *adminClient, method, path, mediaType string, body []byte, v any) error {
	answer, err := c.send(ctx, method, "tenants/"+path, mediaType, body, "")
	if err == nil {
		err = p.refusal(answer, "")
	}
	if err == nil {
		err = answer.read(v)
	}
	return err
}

func (p program) setSecret(ctx context.Context, c *adminClient, o *tenantOptions, args []string) error {
	value, err := io.ReadAll(io.LimitReader(p.stdin, sealed.MaxValue+3))
	if err != nil {
		return fmt.Errorf("the secret cannot be read from standard input: %w; write < FILE", err)
	}
	value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	switch {
	case len(value) == 0:
		return errors.New("standard input is empty; the secret is read from there: write < FILE")
	case len(value) > sealed.MaxValue:
		return fmt.Errorf("the secret has more than %d bytes; a line break at its end is not counted", sealed.MaxValue)
	}
	var r admin.Result
	if err := p.secret(ctx, c, http.MethodPut, segment(args[0])+"/secrets/"+segment(args[1]), secretType, value, &r); err != nil {
		return err
	}
	return p.tell(o, &r, "has secret "+args[1]+digestShown(r.Secret), p.stdout)
}

func digestShown(s *admin.Secret) string {
	if s == nil {
		return ""
	}
	return ", digest " + s.Digest
}

func (p program) removeSecret(ctx context.Context, c *adminClient, o *tenantOptions, args []string) error {
	var r admin.Result
	if err := p.secret(ctx, c, http.MethodDelete, segment(args[0])+"/secrets/"+segment(args[1]), "", nil, &r); err != nil {
		return err
	}
	return p.tell(o, &r, "has no secret "+args[1]+" any more", p.stdout)
}

func (p program) resealSecrets(ctx context.Context, c *adminClient, o *tenantOptions, args []string) error {
	if o.all {
		return p.resealAll(ctx, c, o)
	}
	var r admin.Result
	if err := p.secret(ctx, c, http.MethodPost, segment(args[0])+"/secrets:reseal", "application/json", []byte("{}"), &r); err != nil {
		return err
	}
	return p.tell(o, &r, "has its secrets under the first key", p.stdout)
}

func (p program) listSecrets(ctx context.Context, c *adminClient, o *tenantOptions, args []string) error {
	var list admin.SecretList
	if err := p.secret(ctx, c, http.MethodGet, segment(args[0])+"/secrets", "", nil, &list); err != nil {
		return err
	}
	if o.format == "json" {
		return p.writeJSON(list)
	}
	return p.writeTable("SECRET\tSET\tDIGEST\tSTATE", func(table io.Writer) {
		for _, s := range list.Secrets {
			set, state := s.Set.Format(time.RFC3339), "good"
			switch {
			case s.Unusable:
				set, state = "-", "does not open: no key that is given has sealed it"
			case s.Outdated:
				state = "under an older key: reseal it"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", printable(s.Name), set, printable(s.Digest), state)
		}
	})
}
