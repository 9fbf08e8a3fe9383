// Command opa-backend is a policy backend of the Agent Hooks Protocol whose
// rules are Rego, evaluated by the OPA that is linked into it.
package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// maxBody is the largest message that is read, in bytes: more than the gateway
// sends with its default limits.body.
const maxBody = 2 << 20

func main() {
	listen := flag.String("listen", "127.0.0.1:9001", "address to serve on; port 0 takes any free port")
	folder := flag.String("policy", "policy", "folder of Rego files that define data.ahp.effects")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rules, err := load(ctx, *folder)
	if err == nil {
		err = serve(ctx, *listen, os.Getenv("POLICY_TOKEN"), rules)
	}
	if err != nil {
		log.Fatal("opa-backend: ", err)
	}
}

// serve answers until ctx is done, and then finishes what it has begun.
func serve(ctx context.Context, address, token string, rules *policy) error {
	if token == "" {
		return errors.New("POLICY_TOKEN is not set: set it to the token that callers have to send")
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.Handle("POST /ahp", authenticated(token, http.HandlerFunc(rules.answer)))
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute, // longer than the gateway's own, which is 4 s
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return server.Shutdown(drain)
}

// authenticated passes on what has the token. Digests of equal length are
// compared, so that the time taken says nothing about the token.
func authenticated(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token is required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answer reads one message and writes one answer, head and body in one piece.
func (p *policy) answer(w http.ResponseWriter, r *http.Request) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		http.Error(w, "the body must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body is too large or was cut off", http.StatusRequestEntityTooLarge)
		return
	}
	// A map and not a struct: encoding/json would take "Input" for "input", and
	// the policy would judge another value than the tool is given.
	var value any
	if json.Unmarshal(body, &value) != nil {
		reply(w, nil, "error", failure(-32700, "Parse error"))
		return
	}
	message, _ := value.(map[string]any)
	id, hasID := message["id"]
	method, _ := message["method"].(string)
	params, _ := message["params"].(map[string]any)
	version, _ := params["protocolVersion"].(string)
	kind, _ := at(params, "event", "type").(string)
	_, isText := id.(string)
	_, isNumber := id.(float64)
	switch {
	case message["jsonrpc"] != "2.0" || method == "" || hasID && !isText && !isNumber:
		reply(w, nil, "error", failure(-32600, "Invalid Request"))
	case !hasID: // a notification: it is never answered, not even where it is wrong
		if method == "hooks/observe" {
			log.Printf("observed %.64q", kind)
		}
		w.WriteHeader(http.StatusNoContent)
	case method != "hooks/intercept" && method != "hooks/configuration":
		reply(w, id, "error", failure(-32601, "Method not found"))
	case version != "draft" && (version != "0.1" || method == "hooks/configuration"):
		f := failure(-32001, "unsupported_protocol_version")
		f["data"] = object{"supported": []string{"0.1", "draft"}}
		reply(w, id, "error", f)
	case method == "hooks/configuration":
		reply(w, id, "result", object{"protocolVersion": version, "configuration": json.RawMessage(wanted)})
	default:
		effects, f := p.intercept(r.Context(), params, id, kind)
		if f != nil {
			reply(w, id, "error", f)
			return
		}
		reply(w, id, "result", object{"protocolVersion": version, "effects": effects})
	}
}

// wanted is what a draft registration may leave to the backend to say.
const wanted = `{"subscriptions": [
	{"events": ["tool.before"], "mode": "intercept", "timeoutMs": 750, "failurePolicy": "fail-closed", "content": {"default": "metadata"}},
	{"events": ["tool.after"], "mode": "observe", "content": {"default": "omit"}}]}`

// intercept checks what the policy relies on, and asks it. What cannot be
// judged is an error: the subscription's failure policy then holds.
func (p *policy) intercept(ctx context.Context, params map[string]any, id any, kind string) ([]any, object) {
	tool, _ := at(params, "event", "tool").(map[string]any)
	_, hasInput := tool["input"].(map[string]any)
	capabilities, _ := params["capabilities"].(map[string]any)
	advertised, _ := capabilities["effects"].([]any)
	switch {
	case id == "" || id != at(params, "event", "id"):
		return nil, failure(-32602, "params.event.id must be the request's id")
	case kind != "tool.before":
		return nil, failure(-32002, "unsupported_event")
	case !hasInput:
		return nil, failure(-32602, "params.event.tool.input must be an object")
	case !slices.Contains(advertised, any("deny")):
		return nil, failure(-32602, `params.capabilities.effects must hold "deny"`)
	}
	effects, err := p.decide(ctx, params)
	if err != nil {
		log.Print("opa-backend: ", err) // for operators: a harness gets no details
		return nil, failure(-32004, "backend_internal_error")
	}
	return effects, nil
}

func failure(code int, message string) object { return object{"code": code, "message": message} }

// reply writes a JSON-RPC response. What is given with its length before the
// first byte is written leaves in one packet.
func reply(w http.ResponseWriter, id any, member string, value any) {
	body, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, member: value})
	if err != nil {
		http.Error(w, "the answer has no JSON form", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = w.Write(body)
}

// object is a JSON object.
type object map[string]any

// at returns the member of v at a path, or nil.
func at(v any, path ...string) any {
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}
