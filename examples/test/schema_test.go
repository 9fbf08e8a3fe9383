package examples

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// judge has the official SDK validate messages, and their answers in the
// context of what was asked: one line of [kind, message, request] each.
const judge = `
import json, sys
from agenthooksprotocol.runtime import ProtocolError, Validator, _validate_intercept_response
from agenthooksprotocol.server._admission import validate_grants
validator = Validator()
for line in sys.stdin:
    kind, message, request = json.loads(line)
    try:
        validator.validate(kind, message)
        if kind == "intercept-response":
            _validate_intercept_response(validator, request, message)
            validate_grants(request, message)
    except ProtocolError as mistake:
        print(kind, json.dumps(message), mistake)
`

// TestSchemas holds every answer of draft against the official schemas and the
// SDK's own rules of what may be answered to a request.
func TestSchemas(t *testing.T) {
	python := slices.IndexFunc(examples, func(e example) bool { return e.name == "python" })
	interpreter := filepath.Join(examples[python].install(t), ".venv/bin/python")
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			_, url := e.serve(t)
			var lines strings.Builder
			say := func(kind string, message, request any) {
				text, err := json.Marshal([]any{kind, message, request})
				if err != nil {
					t.Fatal(err)
				}
				lines.Write(append(text, '\n'))
			}
			for name, d := range decisions {
				request := event("draft", name, "hooks/intercept", d.input, d.effects...)
				_, answer := post(t, url, token, request)
				say("intercept-request", request, nil)
				say("intercept-response", answer, request)
			}
			asked := object{"jsonrpc": "2.0", "id": "1", "method": "hooks/configuration", "params": object{"protocolVersion": "draft"}}
			_, answer := post(t, url, token, asked)
			say("configuration-request", asked, nil)
			say("configuration-response", answer, nil)
			say("observe-notification", event("draft", "observed", "hooks/observe", object{"command": "ls"}), nil)
			if said := command(t, ".", lines.String(), interpreter, "-c", judge); said != "" {
				t.Errorf("the official SDK refuses:\n%s", said)
			}
			wrong, _ := json.Marshal([]any{"intercept-response", answer, nil})
			if said := command(t, ".", string(wrong), interpreter, "-c", judge); said == "" {
				t.Error("the official SDK takes a configuration for the answer of an intercept")
			}
		})
	}
}

// TestRegistration validates examples/gateway.yaml as it is.
func TestRegistration(t *testing.T) {
	out := command(t, filepath.Join(root, "examples"), "", filepath.Join(programs, "ahp-gateway"), "validate", "--config", "gateway.yaml")
	if !strings.Contains(out, "tool.before") {
		t.Errorf("validate of examples/gateway.yaml says %s; want the chain of tool.before", out)
	}
	if _, err := os.Stat(filepath.Join(root, "examples/audit.jsonl")); err == nil {
		t.Error("validate has left an audit file")
	}
}

// TestLinks follows the links of the READMEs to files of the tree.
func TestLinks(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join(root, "examples/*/README.md"))
	if err != nil || len(documents) != 5 {
		t.Fatalf("examples have the READMEs %v, %v; want five", documents, err)
	}
	for _, document := range append(documents, filepath.Join(root, "examples/README.md")) {
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(read(t, document), -1) {
			if strings.HasPrefix(link[1], "http") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), link[1])); err != nil {
				t.Errorf("%s links %s: %v", document, link[1], err)
			}
		}
	}
}
