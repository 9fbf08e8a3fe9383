package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ahp-gateway/ahp-gateway/config"
)

func (p program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration or its JSON Schema",
		Args:  cobra.ArbitraryArgs,
		RunE:  needsCommand,
	}
	cmd.AddCommand(p.configPrintCommand(), p.configSchemaCommand())
	return cmd
}

func (p program) configPrintCommand() *cobra.Command {
	file, store := "", false
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the effective configuration, without secrets",
		Long: `Prints the configuration as the gateway understands it, as YAML: every default
filled in, every registration document inline, every path absolute. Of
secrets the references are shown, of keys a shortened digest. Without --config it prints the defaults.`,
		Example: `  ahp-gateway config print
  ahp-gateway config print --config gateway.yaml`,
		Args: noArguments("--config %s"),
		RunE: action(func(ctx context.Context) error {
			if store && file == "" {
				return usage("--with-store needs --config, which says where Redis is")
			}
			if file == "" {
				out, err := defaults()
				if err != nil {
					return err
				}
				return write(p.stdout, out)
			}
			l, err := loadFile(ctx, file, store)
			p.report(l.warnings, err)
			if err != nil {
				return &exit{code: exitFailure}
			}
			p.report(nil, l.outside())
			return write(p.stdout, l.file.Print())
		}),
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "gateway file")
	cmd.Flags().BoolVar(&store, "with-store", false, withStoreUsage)
	return cmd
}

// exampleFile is the shortest gateway file that shows every default, those of
// backends and subscriptions included.
const exampleFile = `registration:
  protocolVersion: draft
  hooks:
    - id: com.example.policy
      transport: {type: http, url: "http://127.0.0.1:9000/hooks"}
      subscriptions:
        - events: [tool.before]
          mode: intercept
          timeoutMs: 2000
          failurePolicy: fail-closed
          content: {default: metadata}
`

// defaults returns a gateway file that spells every default out.
func defaults() ([]byte, error) {
	f, _, err := config.Parse("defaults.yaml", []byte(exampleFile), nil)
	if err != nil {
		return nil, fmt.Errorf("the built-in example: %w", err)
	}
	const remark = "# Every setting at its default. The registration is an example, and the settings\n" +
		"# below backends are those that any backend starts with.\n"
	return append([]byte(remark), f.Print()...), nil
}

func (p program) configSchemaCommand() *cobra.Command {
	registration := false
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the gateway file, for editors",
		Long: `Prints the JSON Schema (2020-12) of the gateway file or, with --registration,
of portable registration documents. An editor that knows it completes keys and
marks mistakes; "ahp-gateway validate" knows rules that a schema cannot state.`,
		Example: `  ahp-gateway config schema > gateway.schema.json
  ahp-gateway config schema --registration > registration.schema.json`,
		Args: cobra.NoArgs,
		RunE: action(func(context.Context) error {
			if registration {
				return write(p.stdout, config.RegistrationSchema())
			}
			return write(p.stdout, config.GatewaySchema())
		}),
	}
	cmd.Flags().BoolVar(&registration, "registration", false, "the schema of registration documents")
	return cmd
}

// report writes warnings and mistakes to standard error, one per line.
func (p program) report(warnings []config.Mistake, err error) {
	for _, w := range warnings {
		fmt.Fprintln(p.stderr, w)
	}
	if err == nil {
		return
	}
	mistakes := config.AsMistakes(err)
	for _, m := range mistakes {
		fmt.Fprintln(p.stderr, m)
	}
	if len(mistakes) == 0 {
		fmt.Fprintln(p.stderr, err)
	}
}
