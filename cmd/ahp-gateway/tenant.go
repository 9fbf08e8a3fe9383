package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ahp-gateway/ahp-gateway/admin"
)

type tenantOptions struct {
	admin, keyEnv string
	tls           tlsFiles
	allowHTTP     bool
	timeout       time.Duration
	format        string

	file, ifMatch string
	noKey, all    bool
}

func (p program) tenantCommand() *cobra.Command {
	var o tenantOptions
	cmd := &cobra.Command{
		Use:   "tenant",
		Short: "Add, change and remove the tenants of a running gateway",
		Long: `Changes the tenants of a running gateway through its admin API, which the gateway
file switches on with adminApi. When a command has succeeded the change is served
and stored.

The admin key is read from the environment variable that --key-env names. It is
never printed, and not sent over plain http to another machine unless --allow-http
is given.

Exit codes: 0 success, 1 a mistake in the document or any other failure, 2 wrong usage.`,
		Args: cobra.ArbitraryArgs,
		RunE: needsCommand,
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.admin, "admin", "http://127.0.0.1:8788", "the gateway's private listener")
	f.StringVar(&o.keyEnv, "key-env", "AHP_ADMIN_KEY", "environment variable that holds the admin key")
	o.tls.flags(f, "PEM chain of a client certificate; a key is then sent only if there is one")
	f.BoolVar(&o.allowHTTP, "allow-http", false, "send the key over plain http to another machine")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "for everything, of secret reseal --all for each tenant")
	f.StringVar(&o.format, "format", "text", "text or json")

	add := &cobra.Command{
		Use:   "add [--file FILE]",
		Short: "Add a tenant and print its key",
		Long: `Adds the tenant whose document is read from --file or standard input: an object of
the shape of a member of tenants in the gateway file, in YAML or JSON. Where it has
neither keys nor certificates a key is made and printed once, alone on standard
output: nothing keeps it. With --no-key none is made, for a tenant that comes by
tokens of auth alone.`,
		Example: `  ahp-gateway tenant add --file acme.yaml > acme.key
  ahp-gateway tenant add --file acme.yaml --no-key`,
		Args: noArguments("--file %s"),
		RunE: tenantAction(&o, p.addTenant),
	}
	list := &cobra.Command{
		Use:   "list",
		Short: "List the tenants that are served",
		Args:  cobra.NoArgs,
		RunE:  tenantAction(&o, p.listTenants),
	}
	get := &cobra.Command{
		Use:   "get TENANT",
		Short: "Print a tenant's document",
		Args:  theseArguments("TENANT"),
		RunE:  tenantAction(&o, p.getTenant),
	}
	put := &cobra.Command{
		Use:     "put TENANT [--file FILE]",
		Short:   "Replace a tenant's document",
		Long:    "Replaces the tenant's document by that in --file or standard input, whatever it is\nnow, or with --if-match only if it is the one with that ETag.",
		Example: `  ahp-gateway tenant put acme --file acme.yaml`,
		Args:    theseArguments("TENANT"),
		RunE:    tenantAction(&o, p.putTenant),
	}
	rotate := &cobra.Command{
		Use:   "rotate-key TENANT",
		Short: "Make a new key and print it; the newest old one stays good",
		Long: `Makes a new key and prints it once, alone on standard output. Of the keys before
the newest stays good, until it is removed or the next rotation.`,
		Args: theseArguments("TENANT"),
		RunE: tenantAction(&o, p.rotateKey),
	}
	removeKey := &cobra.Command{
		Use:   "remove-key TENANT DIGEST",
		Short: "Remove a key, named by 8 or more hexadecimal digits of its SHA-256",
		Args:  theseArguments("TENANT", "DIGEST"),
		RunE:  tenantAction(&o, p.removeKey),
	}
	remove := &cobra.Command{
		Use:   "remove TENANT",
		Short: "Remove a tenant",
		Long:  "Removes the tenant, whatever its document is now, or with --if-match only if it is\nthe one with that ETag. Its keys are good no more.",
		Args:  theseArguments("TENANT"),
		RunE:  tenantAction(&o, p.removeTenant),
	}
	add.Flags().BoolVar(&o.noKey, "no-key", false, "make no key, for a tenant that comes by tokens alone")
	for _, c := range []*cobra.Command{add, put} {
		c.Flags().StringVarP(&o.file, "file", "f", "-", `the document; "-" is standard input`)
	}
	for _, c := range []*cobra.Command{put, remove} {
		c.Flags().StringVar(&o.ifMatch, "if-match", "", "change the document with this ETag only, with or without its quotes")
	}
	cmd.AddCommand(add, list, get, put, rotate, removeKey, remove, p.secretCommand(&o))
	return cmd
}

// tenantAction makes a command of what is done with a client and its arguments.
func tenantAction(o *tenantOptions, f func(ctx context.Context, c *adminClient, o *tenantOptions, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return action(func(ctx context.Context) error {
			if o.format != "text" && o.format != "json" {
				return usage("--format is %.64q; want text or json", o.format)
			}
			if o.timeout <= 0 {
				return usage("--timeout is %v; want a time above zero", o.timeout)
			}
			c, err := newAdminClient(o)
			if err != nil {
				return err
			}
			if o.all { // each tenant has the time
				return f(ctx, c, o, args)
			}
			ctx, cancel := context.WithTimeout(ctx, o.timeout)
			defer cancel()
			return f(ctx, c, o, args)
		})(cmd, nil)
	}
}

// document reads the document that --file names, and what mistakes call it.
func (p program) document(o *tenantOptions) (name string, data []byte, err error) {
	in, name := p.stdin, "standard input"
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return "", nil, fmt.Errorf("--file: %w", err)
		}
		defer f.Close()
		in, name = f, o.file
	}
	data, err = io.ReadAll(io.LimitReader(in, maxMessage+1))
	if err != nil {
		return "", nil, fmt.Errorf("the document cannot be read: %w", err)
	}
	if len(data) > maxMessage {
		return "", nil, fmt.Errorf("the document is larger than %d bytes, which no tenant's is", maxMessage)
	}
	return name, data, nil
}

func (p program) addTenant(ctx context.Context, c *adminClient, o *tenantOptions, _ []string) error {
	name, data, err := p.document(o)
	if err != nil {
		return err
	}
	path := "tenants"
	if o.noKey {
		path += "?key=none"
	}
	var r admin.Result
	if err := p.change(ctx, c, http.MethodPost, path, name, data, "", &r); err != nil {
		return err
	}
	return p.tell(o, &r, "added", p.stderr)
}

func (p program) putTenant(ctx context.Context, c *adminClient, o *tenantOptions, args []string) error {
	name, data, err := p.document(o)
	if err != nil {
		return err
	}
	match, err := p.match(ctx, c, o, args[0])
	if err != nil {
		return err
	}
	var r admin.Result
	if err := p.change(ctx, c, http.MethodPut, "tenants/"+segment(args[0]), name, data, match, &r); err != nil {
		return err
	}
	return p.tell(o, &r, "replaced "+match, p.stdout)
}

func (p program) removeTenant(ctx context.Context, c *adminClient, o *tenantOptions, args []string) error {
	match, err := p.match(ctx, c, o, args[0])
	if err != nil {
		return err
	}
	var r admin.Result
	if err := p.change(ctx, c, http.MethodDelete, "tenants/"+segment(args[0]), "", nil, match, &r); err != nil {
		return err
	}
	return p.tell(o, &r, "removed "+match, p.stdout)
}

func (p program) rotateKey(ctx context.Context, c *adminClient, o *tenantOptions, args []string) error {
	var r admin.Result
	if err := p.change(ctx, c, http.MethodPost, "tenants/"+segment(args[0])+"/keys:rotate", "", []byte("{}"), "", &r); err != nil {
		return err
	}
	return p.tell(o, &r, "has a new key", p.stderr)
}

func (p program) removeKey(ctx context.Context, c *adminClient, o *tenantOptions, args []string) error {
	var r admin.Result
	if err := p.change(ctx, c, http.MethodDelete, "tenants/"+segment(args[0])+"/keys/"+segment(args[1]), "", nil, "", &r); err != nil {
		return err
	}
	return p.tell(o, &r, "has a key less", p.stdout)
}

// match returns the ETag of what is to be changed: the one that was given, or
// that of the document as it is now.
func (p program) match(ctx context.Context, c *adminClient, o *tenantOptions, id string) (string, error) {
	if o.ifMatch != "" {
		return quotedTag(o.ifMatch), nil
	}
	answer, err := c.do(ctx, http.MethodGet, "tenants/"+segment(id), nil, "")
	if err == nil {
		err = p.refusal(answer, "")
	}
	if err != nil {
		return "", err
	}
	return answer.etag, nil
}

// quotedTag returns an ETag, or several, or "*", as If-Match has it: a shell takes
// the quotes of what somebody writes.
func quotedTag(tag string) string {
	if tag == "*" || strings.Contains(tag, `"`) {
		return tag
	}
	return `"` + tag + `"`
}

// change has the API make a change.
func (p program) change(ctx context.Context, c *adminClient, method, path, name string, data []byte, match string, r *admin.Result) error {
	answer, err := c.do(ctx, method, path, data, match)
	if err == nil {
		err = p.refusal(answer, name)
	}
	if err == nil {
		err = answer.read(r)
	}
	return err
}

// tell prints what came of a change to out, which is not standard output where a
// key can have been made: that is alone there, to be sent where it belongs.
func (p program) tell(o *tenantOptions, r *admin.Result, what string, out io.Writer) error {
	for _, w := range r.Warnings {
		w.File = "document"
		fmt.Fprintln(p.stderr, printable(w.String()))
	}
	if o.format == "json" {
		return p.writeJSON(r)
	}
	text := fmt.Sprintf("tenant %s %s, served by generation %d", r.ID, what, r.Generation)
	if r.ETag != "" {
		text += ", ETag " + r.ETag
	}
	if err := write(out, []byte(printable(text)+"\n")); err != nil || r.Key == "" {
		return err
	}
	return write(p.stdout, []byte(printable(r.Key)+"\n"))
}

func (p program) getTenant(ctx context.Context, c *adminClient, _ *tenantOptions, args []string) error {
	answer, err := c.do(ctx, http.MethodGet, "tenants/"+segment(args[0]), nil, "")
	if err == nil {
		err = p.refusal(answer, "")
	}
	if err != nil {
		return err
	}
	var v map[string]any
	if err := answer.read(&v); err != nil {
		return err
	}
	return write(p.stdout, escapeInvisible(answer.body))
}

// everyTenant returns all pages of the list of tenants as one.
func (p program) everyTenant(ctx context.Context, c *adminClient) (admin.Page, error) {
	all := admin.Page{Tenants: []admin.Tenant{}}
	for cursor := ""; ; {
		path := "tenants?limit=500"
		if cursor != "" {
			path += "&cursor=" + segment(cursor)
		}
		answer, err := c.do(ctx, http.MethodGet, path, nil, "")
		if err == nil {
			err = p.refusal(answer, "")
		}
		var page admin.Page
		if err == nil {
			err = answer.read(&page)
		}
		if err != nil {
			return all, err
		}
		all.Tenants = append(all.Tenants, page.Tenants...)
		all.LastGood = page.LastGood
		if page.Next == "" {
			return all, nil
		}
		if page.Next <= cursor { // what answers is no such API, and would never end
			return all, errors.New("the pages of the list are not in order; see that --admin is the private listener of an ahp-gateway")
		}
		cursor = page.Next
	}
}

func (p program) listTenants(ctx context.Context, c *adminClient, o *tenantOptions, _ []string) error {
	all, err := p.everyTenant(ctx, c)
	if err != nil {
		return err
	}
	if o.format == "json" {
		return p.writeJSON(all)
	}
	return p.writeTable("TENANT\tKEYS\tMANAGED\tETAG\tSOURCE", func(table io.Writer) {
		for _, t := range all.Tenants {
			source := t.Source
			switch {
			case source != "":
			case all.LastGood:
				source = "last good configuration"
			default:
				source = "gateway file"
			}
			fmt.Fprintf(table, "%s\t%d\t%t\t%s\t%s\n", printable(t.ID), t.Keys, t.Managed, printable(t.ETag), printable(source))
		}
	})
}

// writeTable prints a header and rows, whose cells have tabs between them, in columns.
func (p program) writeTable(header string, rows func(table io.Writer)) error {
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, header)
	rows(table)
	if err := table.Flush(); err != nil {
		return err
	}
	return write(p.stdout, out.Bytes())
}
