package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ahp-gateway/ahp-gateway/config"
)

type diffOptions struct {
	config, against, running, format string
	tls                              tlsFiles
	store                            bool
}

func (p program) diffCommand() *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff --config FILE (--against FILE | --against-running URL)",
		Short: "Show what a new gateway file would change",
		Long: `Compares the gateway file with another one, or with what a running gateway
serves, which its private listener tells. It prints which settings differ and
which tenants are added, removed or changed; and of these, event by event, the
chains of backends that differ: who is called in which order, with which timeout
and failure policy, and how long that takes at worst before and after.

Both sides are compared as "ahp-gateway config print" shows them: secrets are not
compared, only what refers to them, and of keys only the first eight digits of
the digest. Nothing is called but the private listener. Subscriptions that are
discovered at load are in no chain; tenants in Redis (adminApi.store: redis) are
in a file only with --with-store, and in a running gateway always. Which folder
its tenants are in a running gateway tells only while that is empty.

--format json prints one document on standard output instead.

Exit codes: 0 no difference, 3 differences, 1 a mistake in a file or a gateway
that does not answer, 2 wrong usage.`,
		Example: `  ahp-gateway diff --config new.yaml --against gateway.yaml
  ahp-gateway diff --config gateway.yaml --against-running http://127.0.0.1:8788
  ahp-gateway diff --config gateway.yaml --against-running https://gateway.example:8788 \
      --ca-file roots.pem --cert-file me.crt --key-file me.key`,
		Args: noArguments("--config %[1]s or --against %[1]s"),
		RunE: action(func(ctx context.Context) error { return p.diff(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVarP(&o.config, "config", "c", "", "gateway file (required)")
	f.StringVar(&o.against, "against", "", "gateway file to compare it with")
	f.StringVar(&o.running, "against-running", "", "URL of the private listener of the gateway to compare it with")
	o.tls.flags(f, "PEM chain of a client certificate, where --against-running asks for one")
	f.BoolVar(&o.store, "with-store", false, withStoreUsage)
	f.StringVar(&o.format, "format", "text", "text or json")
	return cmd
}

func (p program) diff(ctx context.Context, o diffOptions) error {
	switch {
	case o.config == "":
		return usage("--config is needed; write --config FILE with the gateway file")
	case (o.against == "") == (o.running == ""):
		return usage("exactly one of --against and --against-running is needed")
	case o.format != "text" && o.format != "json":
		return usage("--format is %.64q; want text or json", o.format)
	case o.running == "" && o.tls != tlsFiles{}:
		return usage("--ca-file, --cert-file and --key-file are for --against-running")
	}
	running, err := privateURL(o.running)
	if err != nil {
		return err
	}
	client, err := o.tls.client()
	if err != nil {
		return err
	}
	l, err := loadFile(ctx, o.config, o.store)
	p.report(l.warnings, err)
	if err != nil {
		return &exit{code: exitFailure}
	}
	p.report(nil, l.outside())
	after := l.file
	var before *config.File
	if running != nil {
		before, err = runningConfig(ctx, client, running)
		if err == nil && before.TenantsDir == "" {
			after.TenantsDir = "" // what it has is not known
		}
	} else {
		l, err = loadFile(ctx, o.against, o.store)
		if before = l.file; err == nil {
			p.report(nil, l.outside())
		}
	}
	if err != nil {
		p.report(nil, err)
		return &exit{code: exitFailure}
	}
	d, err := differenceOf(before, after)
	if err != nil {
		return err
	}
	if o.format == "json" {
		err = p.writeJSON(d)
	} else {
		err = write(p.stdout, []byte(d.String()))
	}
	if err == nil && !d.Equal {
		return &exit{code: exitDifferent}
	}
	return err
}

const (
	// runningTimeout bounds how long a running gateway may take to tell its
	// configuration, and maxRunning how large that may be, in bytes.
	runningTimeout = 30 * time.Second
	maxRunning     = 512 << 20
)

// privateURL reads the URL of a private listener, which may be "".
func privateURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, usage("--against-running is no http URL; want one such as http://127.0.0.1:8788")
	}
	return u, nil
}

// runningConfig asks the gateway whose private listener is at base what it serves.
func runningConfig(ctx context.Context, client *http.Client, base *url.URL) (*config.File, error) {
	at := base.JoinPath("/admin/config")
	ctx, cancel := context.WithTimeout(ctx, runningTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the running gateway does not answer: %w", unanswered(err, "--against-running"))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, maxSaid)) // what there is of it
		return nil, fmt.Errorf("%s answers %d%s; write the URL of the private listener, and its client certificate if it asks for one", at.Redacted(), resp.StatusCode, quotedLine(said, ""))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxRunning+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the running gateway's answer: %w", err)
	case len(data) > maxRunning:
		return nil, fmt.Errorf("%s answers more than %d bytes", at.Redacted(), maxRunning)
	}
	return config.ParsePrinted(at.Redacted(), data)
}

// difference is the JSON document of diff. Its lists are never null.
type difference struct {
	Equal bool `json:"equal"`
	// Settings are those that belong to no tenant.
	Settings []settingDifference `json:"settings"`
	Tenants  []tenantDifference  `json:"tenants"`
}

// settingDifference is one value; "" where it is not there.
type settingDifference struct {
	Key    string `json:"key"`
	Before string `json:"before"`
	After  string `json:"after"`
}

type tenantDifference struct {
	Tenant string `json:"tenant"`
	// Change is added, removed or changed.
	Change   string              `json:"change"`
	Settings []settingDifference `json:"settings"`
	Chains   []chainDifference   `json:"chains"`
}

// chainDifference is one event whose backends differ. Before or After is null
// where nobody is told of the event.
type chainDifference struct {
	ProtocolVersion string `json:"protocolVersion"`
	Event           string `json:"event"`
	Before          *route `json:"before"`
	After           *route `json:"after"`
}

// differenceOf compares two configurations.
func differenceOf(before, after *config.File) (*difference, error) {
	d := &difference{
		Settings: settingsBetween(before.PrintSettings(), after.PrintSettings()),
		Tenants:  []tenantDifference{},
	}
	if a, b := before.TenantsDir, after.TenantsDir; a != b {
		d.Settings = append(d.Settings, settingDifference{"tenantsDir", quoted(a), quoted(b)})
	}
	old := make(map[string]*config.Tenant, len(before.Tenants))
	for i := range before.Tenants {
		old[before.Tenants[i].ID] = &before.Tenants[i]
	}
	compare := func(a, b *config.Tenant) error {
		t, err := tenantBetween(a, b, before.Limits.Budget, after.Limits.Budget)
		if t != nil {
			d.Tenants = append(d.Tenants, *t)
		}
		return err
	}
	for i := range after.Tenants {
		b := &after.Tenants[i]
		if err := compare(old[b.ID], b); err != nil {
			return nil, err
		}
		delete(old, b.ID)
	}
	for i := range before.Tenants {
		if a := &before.Tenants[i]; old[a.ID] != nil {
			if err := compare(a, nil); err != nil {
				return nil, err
			}
		}
	}
	d.Equal = len(d.Settings)+len(d.Tenants) == 0
	return d, nil
}

// quoted returns a text as it is shown among settings: "" for one that is not there.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return strconv.Quote(text)
}

// tenantBetween compares a tenant before and after, either of which may be nil.
// It returns nil where there is no difference.
func tenantBetween(before, after *config.Tenant, budgetBefore, budgetAfter time.Duration) (*tenantDifference, error) {
	var a, b []byte
	t := &tenantDifference{Change: "changed"}
	if before == nil {
		t.Change = "added"
	} else {
		t.Tenant, a = before.ID, before.Print()
	}
	if after == nil {
		t.Change = "removed"
	} else {
		t.Tenant, b = after.ID, after.Print()
	}
	same := bytes.Equal(a, b)
	if same && budgetBefore == budgetAfter {
		return nil, nil
	}
	old, err := routesOf(before, budgetBefore)
	if err != nil {
		return nil, err
	}
	now, err := routesOf(after, budgetAfter)
	if err != nil {
		return nil, err
	}
	t.Chains = chainsBetween(old, now)
	t.Settings = []settingDifference{}
	if t.Change == "changed" {
		t.Settings = slices.DeleteFunc(settingsBetween(a, b), func(s settingDifference) bool { return isRouting(s.Key) })
	}
	if len(t.Chains)+len(t.Settings) > 0 || t.Change != "changed" {
		return t, nil
	}
	if same {
		return nil, nil
	}
	t.Settings = append(t.Settings, settingDifference{Key: "order", Before: "of what is the same otherwise", After: "another one"})
	return t, nil
}

// isRouting reports whether a setting of a tenant is one that routes show.
func isRouting(key string) bool {
	_, own, ok := strings.Cut(key, ".subscriptions[")
	if !ok {
		return false
	}
	_, own, _ = strings.Cut(own, "]")
	switch own {
	case ".id", ".events", ".mode", ".timeoutMs", ".failurePolicy":
		return true
	default:
		return false
	}
}

// chainsBetween returns the events that differ: first those that there are after,
// then those that there were before only.
func chainsBetween(before, after []eventRoute) []chainDifference {
	differing := []chainDifference{}
	find := func(routes []eventRoute, of eventRoute) *route {
		for i := range routes {
			if routes[i].version == of.version && routes[i].event == of.event {
				return &routes[i].route
			}
		}
		return nil
	}
	for i := range after {
		now := &after[i]
		if old := find(before, *now); old == nil || !old.equal(&now.route) {
			differing = append(differing, chainDifference{now.version.String(), now.event.String(), old, &now.route})
		}
	}
	for i := range before {
		old := &before[i]
		if find(after, *old) == nil {
			differing = append(differing, chainDifference{old.version.String(), old.event.String(), &old.route, nil})
		}
	}
	return differing
}

// String returns the difference for people.
func (d *difference) String() string {
	if d.Equal {
		return "no difference\n"
	}
	var out strings.Builder
	settings := func(all []settingDifference, indent string) {
		for _, s := range all {
			fmt.Fprintf(&out, "%s%s: %s → %s\n", indent, s.Key, orNone(s.Before), orNone(s.After))
		}
	}
	settings(d.Settings, "")
	count := make(map[string]int)
	for _, t := range d.Tenants {
		count[t.Change]++
		fmt.Fprintf(&out, "tenant %s: %s\n", t.Tenant, t.Change)
		settings(t.Settings, "  ")
		for _, c := range t.Chains {
			fmt.Fprintf(&out, "  %s %s:\n", c.ProtocolVersion, c.Event)
			if c.Before != nil {
				fmt.Fprintf(&out, "    before: %s\n", c.Before)
			}
			if c.After != nil {
				fmt.Fprintf(&out, "    after:  %s\n", c.After)
			}
		}
	}
	fmt.Fprintf(&out, "settings: %d changed; tenants: %d added, %d removed, %d changed\n", len(d.Settings), count["added"], count["removed"], count["changed"])
	return out.String()
}

func orNone(value string) string {
	if value == "" {
		return "(none)"
	}
	return value
}
