package main

import (
	"fmt"
	"os/exec"
	"strings"
)

// commands writes the reference of the command line from what the command says.
func commands(p *page, binary string) error {
	p.title("Commands", "what ahp-gateway --help prints")
	p.text("What `ahp-gateway COMMAND --help` prints. `ahp-gateway completion` writes completions for bash, zsh, fish and PowerShell.")
	return command(p, binary, nil)
}

// command adds a command and those below it.
func command(p *page, binary string, path []string) error {
	out, err := exec.Command(binary, append(path, "--help")...).Output()
	if err != nil {
		return fmt.Errorf("ahp-gateway %s --help: %w", strings.Join(path, " "), err)
	}
	help := string(out)
	p.text("## %s", strings.Join(append([]string{"ahp-gateway"}, path...), " "))
	p.block("text", help)
	_, list, _ := strings.Cut(help, "\nAvailable Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "help" || fields[0] == "completion" {
			continue
		}
		if err := command(p, binary, append(path[:len(path):len(path)], fields[0])); err != nil {
			return err
		}
	}
	return nil
}
