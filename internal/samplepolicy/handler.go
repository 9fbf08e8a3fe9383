package samplepolicy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"time"
)

// maxBody is the largest message that is read, in bytes.
const maxBody = 2 << 20

// deny is the one effect these backends have.
type deny struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Code   string `json:"code"`
}

// policy looks at one tool call. A nil deny means no objection. It is safe for
// concurrent use.
type policy func(call) *deny

// result is the result member of an answer.
type result struct {
	ProtocolVersion string  `json:"protocolVersion"`
	Effects         []*deny `json:"effects"`
}

// answer is a JSON-RPC response.
type answer struct {
	JSONRPC string    `json:"jsonrpc"`
	ID      any       `json:"id"`
	Result  *result   `json:"result,omitempty"`
	Error   *rpcError `json:"error,omitempty"`
}

// ServeHTTP answers one message of the protocol.
func (p policy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST is served here", http.StatusMethodNotAllowed)
		return
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" || r.Header.Get("Content-Encoding") != "" {
		http.Error(w, "the body must be application/json, not encoded", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
		return
	} else if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}

	req, rpcErr := parseRequest(body)
	ans := answer{JSONRPC: "2.0", ID: req.id, Error: rpcErr}
	if rpcErr == nil {
		if req.id == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		// An empty list and not null: 0.1 requires an array.
		ans.Result = &result{ProtocolVersion: req.version, Effects: []*deny{}}
		if d := p(req.call); d != nil {
			ans.Result.Effects = append(ans.Result.Effects, d)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	// The status is out, so an error here means that the caller has gone.
	_ = json.NewEncoder(w).Encode(ans)
}

// Serve serves h on l until ctx is done, then lets calls in flight finish for
// at most five seconds. It closes l and returns nil after an orderly end.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("samplepolicy: serve: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := server.Shutdown(drain)
	if err != nil {
		_ = server.Close()
		err = fmt.Errorf("samplepolicy: calls still in flight at the end: %w", err)
	}
	<-served
	return err
}
