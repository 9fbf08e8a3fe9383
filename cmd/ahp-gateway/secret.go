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
		Args:    cobra.ExactArgs(2),
		RunE:    tenantAction(o, p.setSecret),
	}
	list := &cobra.Command{
		Use:   "list TENANT",
		Short: "List the names of a tenant's secrets",
		Args:  cobra.ExactArgs(1),
		RunE:  tenantAction(o, p.listSecrets),
	}
	remove := &cobra.Command{
		Use:   "remove TENANT NAME",
		Short: "Remove a secret; calls that need it fail",
		Args:  cobra.ExactArgs(2),
		RunE:  tenantAction(o, p.removeSecret),
	}
	reseal := &cobra.Command{
		Use:   "reseal TENANT",
		Short: "Encrypt a tenant's secrets under the first of adminApi.secretsKeys",
		Args:  cobra.ExactArgs(1),
		RunE:  tenantAction(o, p.resealSecrets),
	}
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
		return errors.New("the secret cannot be read from standard input")
	}
	value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	switch {
	case len(value) == 0:
		return errors.New("standard input is empty; the secret is read from there")
	case len(value) > sealed.MaxValue:
		return fmt.Errorf("the secret has more than %d bytes", sealed.MaxValue)
	}
	var r admin.Result
	if err := p.secret(ctx, c, http.MethodPut, segment(args[0])+"/secrets/"+segment(args[1]), "application/octet-stream", value, &r); err != nil {
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
				set, state = "-", "does not open"
			case s.Outdated:
				state = "under an older key"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", printable(s.Name), set, printable(s.Digest), state)
		}
	})
}
