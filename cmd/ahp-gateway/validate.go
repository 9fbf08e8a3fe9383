package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/gateway"
)

type validateOptions struct {
	config, registration, format string
	store                        bool
}

func (p program) validateCommand() *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate (--config FILE | --registration FILE)",
		Short: "Check a gateway file or a registration document",
		Long: `Checks a gateway file with everything that it names, or one portable registration
document, and reports every mistake at once on standard error:

  file:line:col: path: what is wrong: what to write instead

Warnings are marked so and are no mistakes. For a good file it prints, for each
tenant, snapshot and event, how long its chain of backends takes at worst, which
limits.budget caps, and the timeoutMs that a harness must set for the gateway:
the worst case and 250 ms for the gateway and the way there. A harness with less
can give up before the gateway has answered.

For a draft document it also prints the subscriptions that a harness needs which
does not ask the gateway for them by hooks/configuration: the same that it would
be answered, one JSON object on a line.

With --with-store the tenants in Redis (adminApi.store: redis) are checked too;
without it a warning says that they are not. One that could not be served is a
mistake.

Warnings tell of stored secrets that a document refers to and that cannot be had.

No backend is called: of one that lists no subscriptions it says that they are
discovered at load, and leaves them out. Times and subscriptions of that document
are then marked as incomplete.

--format json prints one document on standard output instead.

Exit codes: 0 good, 1 bad, 2 wrong usage.`,
		Example: `  ahp-gateway validate --config gateway.yaml
  ahp-gateway validate --registration hooks.json --format json`,
		Args: noArguments("--config %[1]s or --registration %[1]s"),
		RunE: action(func(ctx context.Context) error { return p.validate(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVarP(&o.config, "config", "c", "", "gateway file to check")
	f.StringVarP(&o.registration, "registration", "r", "", "registration document to check")
	f.StringVar(&o.format, "format", "text", "text or json")
	f.BoolVar(&o.store, "with-store", false, withStoreUsage)
	return cmd
}

// validation is the JSON document of validate. Its lists are never null.
type validation struct {
	Valid    bool             `json:"valid"`
	Mistakes []config.Mistake `json:"mistakes"`
	Warnings []config.Mistake `json:"warnings"`
	Chains   []chain          `json:"chains"`
	// Discovered are the backends that are asked for their subscriptions when
	// the file is loaded. They are in none of the chains.
	Discovered []discovered `json:"discovered"`
	// Harnesses are how harnesses of draft are registered, one for each tenant
	// with a draft document.
	Harnesses []harness `json:"harnesses"`
}

func (p program) validate(ctx context.Context, o validateOptions) error {
	if (o.config == "") == (o.registration == "") {
		return usage("exactly one of --config and --registration is needed")
	}
	if o.store && o.config == "" {
		return usage("--with-store is for --config: a registration document has no tenants")
	}
	if o.format != "text" && o.format != "json" {
		return usage("--format is %.64q; want text or json", o.format)
	}
	file := o.config + o.registration
	v := validation{Mistakes: []config.Mistake{}, Warnings: []config.Mistake{}, Chains: []chain{}, Discovered: []discovered{}, Harnesses: []harness{}}
	docs, warnings, err := checkDocuments(ctx, o)
	if err == nil {
		v.Valid = true
	} else if v.Mistakes = config.AsMistakes(err); len(v.Mistakes) == 0 {
		v.Mistakes = []config.Mistake{{File: file, What: err.Error(), Instead: "correct the document"}}
	}
	v.Warnings = append(v.Warnings, warnings...)
	v.Chains = append(v.Chains, docs.chains...)
	v.Discovered = append(v.Discovered, docs.discovered...)
	v.Harnesses = append(v.Harnesses, docs.harnesses...)

	if o.format == "json" {
		if err := p.writeJSON(v); err != nil {
			return err
		}
	} else {
		p.report(v.Warnings, nil)
		if !v.Valid {
			p.report(nil, config.Mistakes(v.Mistakes))
		} else if err := write(p.stdout, validText(file, &v)); err != nil {
			return err
		}
	}
	if !v.Valid {
		return &exit{code: exitFailure}
	}
	return nil
}

// documents is what is said of the registration documents that were checked.
type documents struct {
	chains     []chain
	discovered []discovered
	harnesses  []harness
}

// add adds what there is to say of one document.
func (d *documents) add(tenant string, budget time.Duration, reg *config.Registration) error {
	table, err := tableOf(reg)
	if err != nil {
		return err
	}
	later := discoveredOf(tenant, reg)
	incomplete := len(later) > 0
	d.discovered = append(d.discovered, later...)
	d.chains = append(d.chains, chainsOf(tenant, budget, table, incomplete)...)
	if reg.Version == ahp.Draft {
		subscriptions := append([]gateway.Subscription{}, gateway.Subscriptions(table, budget)...)
		d.harnesses = append(d.harnesses, harness{tenant, reg.Version.String(), subscriptions, incomplete})
	}
	return nil
}

// checkDocuments reads the document that o names, times its chains and finds
// what is discovered only later.
func checkDocuments(ctx context.Context, o validateOptions) (docs documents, warnings []config.Mistake, err error) {
	if o.registration != "" {
		reg, warnings, err := config.LoadRegistration(o.registration)
		if err != nil {
			return docs, warnings, err
		}
		err = docs.add("", 0, reg)
		return docs, warnings, err
	}
	l, err := loadFile(ctx, o.config, o.store)
	if err != nil {
		return docs, l.warnings, err
	}
	f := l.file
	warnings = append(l.warnings, secretsAmiss(o.config, f)...)
	if len(l.leftOut) > 0 {
		return docs, warnings, l.leftOut
	}
	for i := range f.Tenants {
		t := &f.Tenants[i]
		for _, reg := range t.Registrations {
			if err := docs.add(t.ID, f.Limits.Budget, reg); err != nil {
				return docs, warnings, err
			}
		}
	}
	return docs, warnings, nil
}

func validText(file string, v *validation) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s is valid\n", file)
	for _, c := range v.Chains {
		out.WriteString(c.String())
		out.WriteByte('\n')
	}
	for _, d := range v.Discovered {
		out.WriteString(d.String())
		out.WriteByte('\n')
	}
	if len(v.Chains)+len(v.Discovered) == 0 {
		out.WriteString("no event is intercepted\n")
	}
	for _, h := range v.Harnesses {
		if len(h.Subscriptions) > 0 {
			out.WriteString(h.String())
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}
