// They are about processes, which the race detector does not look into.

//go:build linux && !race

package ahpgateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The bridge that people copy denies whatever is answered but a decision: a
// harness goes on after any exit code but 2.
func TestBridge(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	_, script, _ := strings.Cut(read(t, "docs/migrate.md"), "```python title=\"bridge.py\"\n")
	script, _, ok := strings.Cut(script, "```\n")
	if !ok {
		t.Fatal("docs/migrate.md has no bridge.py")
	}
	path := filepath.Join(t.TempDir(), "bridge.py")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		answer string // with ID for the event's
		code   int
		said   string
	}{
		{`{"id": "ID", "result": {"effects": []}}`, 0, ""},
		{`{"id": "ID", "result": {"effects": [{"type": "deny", "reason": "No."}]}}`, 2, "No.\n"},
		{`{"id": "ID", "result": {"effects": [{"type": "deny", "reason": ""}]}}`, 2, "denied\n"},
		{`{"id": "ID", "result": {"effects": [{"type": "deny"}]}}`, 2, "policy cannot be asked: KeyError\n"},
		{`{"id": "ID", "result": {"effects": [{"type": "ask"}]}}`, 2, "policy cannot be asked: ValueError\n"},
		{`{"id": "ID", "result": {"effects": [1]}}`, 2, "policy cannot be asked: TypeError\n"},
		{`{"id": "ID", "result": {"effects": null}}`, 2, "policy cannot be asked: ValueError\n"},
		{`{"id": "ID", "result": {"effects": {}}}`, 2, "policy cannot be asked: ValueError\n"},
		{`{"id": "other", "result": {"effects": []}}`, 2, "policy cannot be asked: ValueError\n"},
		{`{"id": "ID", "error": {"code": -32003}}`, 2, "policy cannot be asked: KeyError\n"},
		{"redirect", 2, "policy cannot be asked: HTTPError\n"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var message struct{ ID string }
			if r.URL.Path != "/hooks" || json.NewDecoder(r.Body).Decode(&message) != nil {
				t.Errorf("bridge with the answer %s: %s %s; want the message at /hooks alone", tt.answer, r.Method, r.URL)
				return
			}
			if tt.answer == "redirect" {
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
				return
			}
			_, _ = w.Write([]byte(strings.Replace(tt.answer, "ID", message.ID, 1)))
		}))
		cmd := exec.CommandContext(t.Context(), python, path)
		cmd.Env = []string{"AHP_GATEWAY_URL=" + server.URL + "/hooks", "AHP_GATEWAY_KEY=k"}
		cmd.Stdin = strings.NewReader(`{"session_id": "s-1", "tool_name": "Bash", "tool_input": {"command": "true"}}`)
		out, err := cmd.CombinedOutput()
		server.Close()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || string(out) != tt.said {
			t.Errorf("bridge with the answer %s = %d, %q (%v); want %d, %q", tt.answer, code, out, err, tt.code, tt.said)
		}
	}
}
