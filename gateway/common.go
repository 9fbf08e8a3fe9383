package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
	"github.com/ahp-gateway/ahp-gateway/shared"
)

// common is what this gateway has in common with its replicas. A nil one stands
// for nothing.
type common struct {
	store  *shared.Store
	refuse bool // requests that need it while it cannot be had
}

// leaseMargin is what an evaluation may take beyond the time of its backends.
const leaseMargin = 500 * time.Millisecond

// openCommon sets g.common if f asks for it. A server that is not there is no
// error: it may come. A password that cannot be had is one, or the gateway
// would go on as somebody else.
func (g *Gateway) openCommon(f *config.Shared) error {
	r := &f.Redis
	if r.URL == "" {
		return nil
	}
	s, err := storeSettings(r, g.environ)
	if err != nil {
		return err
	}
	s.OnChange = func(c shared.Class, reply string) {
		if c == shared.OK {
			g.log.Info("shared state is used again")
			return
		}
		g.log.Warn("shared state cannot be had: replicas know nothing of each other for now", "class", c.String(), "reply", reply, "on_failure", f.OnFailure)
	}
	g.common = &common{refuse: f.OnFailure == "refuse", store: shared.Open(s)}
	return nil
}

// storeSettings returns how to reach the server of r.
func storeSettings(r *config.Redis, environ config.Environ) (shared.Settings, error) {
	s := shared.Settings{Address: r.Address, Database: r.Database, Username: r.Username, Timeout: r.Timeout, Prefix: r.Prefix}
	var err error
	if s.Password, err = redisPassword(r, environ); err != nil {
		return s, fmt.Errorf("gateway: shared: %w", err)
	}
	if !r.TLS {
		return s, nil
	}
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if r.CAFile != "" {
		if s.TLS.RootCAs, err = readRoots("caFile", r.CAFile); err != nil {
			return s, fmt.Errorf("gateway: shared: %w", err)
		}
	}
	return s, nil
}

// redisPassword returns the password that r refers to, or "" if it refers to none.
func redisPassword(r *config.Redis, environ config.Environ) (password string, err error) {
	switch {
	case r.PasswordEnv != "":
		password, _ = environ(r.PasswordEnv)
	case r.PasswordFile != "":
		b, err := os.ReadFile(r.PasswordFile)
		if err != nil {
			return "", errors.New("passwordFile cannot be read")
		}
		password = string(b)
	default:
		return "", nil
	}
	if password = strings.TrimRight(password, "\r\n"); password == "" {
		return "", errors.New("the password is empty or not set")
	}
	return password, nil
}

func (g *Gateway) closeCommon() {
	if g.common != nil {
		g.common.store.Close()
	}
}

// trouble says for /readyz what is wrong with the shared state. That is no
// reason to get no requests: every replica may have it.
func (c *common) trouble() string {
	if c == nil {
		return ""
	}
	why := c.store.Outage()
	switch {
	case why == shared.OK:
		return ""
	case c.refuse:
		return "\nshared state: " + why.String() + ": requests that need it are refused"
	default:
		return "\nshared state: " + why.String() + ": every replica uses its own"
	}
}

// questionKeys returns what the keys of a tenant's questions start with. It is
// the same in two replicas if, and only if, all that their decisions depend on
// is the same: their program, the tenant, its documents with what the backends
// asked for, as whom the backends are asked and by what they are trusted, and
// what a failure is answered with. What only makes failures more or less likely
// does not count.
func questionKeys(version string, f *config.File, t *config.Tenant, peers map[*config.Hook]*peer, discovered map[*config.Hook][]config.Subscription) string {
	type registration struct {
		config.Registration
		Peers [][]byte // what is in peer.decides of its hooks, in order
	}
	decides := struct {
		Program       string
		Tenant        string
		FailClosed    config.FailClosed
		Registrations []registration
	}{Program: version, Tenant: t.ID, FailClosed: f.FailClosed}
	for _, r := range t.Registrations {
		complete := registration{Registration: config.Registration{Version: r.Version, Hooks: slices.Clone(r.Hooks)}}
		for i := range r.Hooks {
			if b := peers[&r.Hooks[i]]; b != nil {
				complete.Peers = append(complete.Peers, b.decides[:])
			}
			if r.Hooks[i].Discover {
				complete.Hooks[i].Subscriptions = discovered[&r.Hooks[i]]
			}
		}
		decides.Registrations = append(decides.Registrations, complete)
	}
	slices.SortFunc(decides.Registrations, func(a, b registration) int { return int(a.Version) - int(b.Version) })
	// All of it is made of strings, numbers and booleans, which always have a JSON form.
	b, _ := json.Marshal(decides)
	sum := sha256.Sum256(b)
	return "answer:" + t.ID + ":" + hex.EncodeToString(sum[:]) + ":"
}

// ask asks the replicas what they know of a message that is new to this one. It
// returns as dedupe.Cache.Begin does, except for Abandoned, which is that the
// message must not be evaluated, since they cannot be asked. The lease is nil
// where nothing is to be left for them.
func (c *common) ask(x *exchange, doc *document) (known []byte, how dedupe.Outcome, lease *shared.Lease) {
	key := dedupe.KeyOf(x.msg.Event.Source, x.msg.Event.ID)
	left := time.Until(x.deadline)
	var turns time.Duration
	for _, h := range doc.of(x.msg.Event.Type).intercept {
		if !h.sub.Shadow {
			turns += h.sub.Timeout
		}
	}
	known, found, lease := c.store.Ask(&shared.Question{
		Key: x.party.questionKeys + hex.EncodeToString(key[:]), Fingerprint: sha256.Sum256(x.msg.Body),
		Deadline: x.deadline, Lease: min(left, turns) + leaseMargin,
	})
	switch found {
	case shared.Lead:
		return nil, dedupe.Miss, lease
	case shared.Hit, shared.Joined:
		if !x.readable(doc, known, found == shared.Hit) {
			c.store.Failures[shared.Begin][shared.Malformed].Add(1)
			return nil, dedupe.Miss, nil
		}
		if found == shared.Hit {
			return known, dedupe.Hit, nil
		}
		return known, dedupe.Joined, nil
	case shared.TimedOut:
		return nil, dedupe.TimedOut, nil
	case shared.Unavailable:
		if c.refuse {
			return nil, dedupe.Abandoned, lease
		}
		return nil, dedupe.Miss, lease
	case shared.Odd:
		return nil, dedupe.Miss, nil
	default:
		return nil, dedupe.Conflict, nil
	}
}

// leave leaves the answer of an exchange for the replicas.
func (c *common) leave(x *exchange, lease *shared.Lease) {
	var remember time.Duration
	if d := &x.snap.file.Dedupe; x.final() && d.Entries > 0 {
		remember = d.TTL
	}
	lease.Finish(x.answer, remember)
}

// readable reports whether a known answer, note included, is one that a replica
// could have given to this message: what is shared is data from outside. One
// that was remembered is final as well.
func (x *exchange) readable(doc *document, known []byte, remembered bool) bool {
	if len(known) <= noteSize || known[1] > 1 || !ahp.Strict(known[noteSize:]) {
		return false
	}
	said, failedOpen, place := verdict(known[0]), known[1] == 1, int(known[2])<<8|int(known[3])
	body := known[noteSize:]
	if string(ahp.Member(body, "id")) != string(x.msg.ID) || string(ahp.Text(ahp.Member(body, "jsonrpc"))) != "2.0" {
		return false
	}
	if said == verdictError {
		return !remembered && ahp.KindOf(ahp.Member(body, "error")) == ahp.KindObject && ahp.Member(body, "result") == nil
	}
	result := ahp.Member(body, "result")
	effects := ahp.Member(result, "effects")
	if string(ahp.Text(ahp.Member(result, "protocolVersion"))) != x.msg.Version.String() ||
		ahp.KindOf(effects) != ahp.KindArray || ahp.Member(body, "error") != nil {
		return false
	}
	empty := true
	for range ahp.Elements(effects) {
		empty = false
		break
	}
	switch said {
	case verdictPass:
		return empty && (!remembered || !failedOpen)
	case verdictChanged:
		return !remembered || !failedOpen
	case verdictDeny:
		return !empty && place < len(doc.of(x.msg.Event.Type).intercept) && (!remembered || !failedOpen)
	case verdictFailClosed:
		return !remembered && !empty && place < len(doc.of(x.msg.Event.Type).intercept)
	default:
		return false
	}
}

// instrumentCommon registers what is measured of the shared state.
func (g *Gateway) instrumentCommon(meter metric.Meter) error {
	if g.common == nil {
		return nil
	}
	failures, err := meter.Int64ObservableCounter("ahp.gateway.shared.failures", metric.WithUnit("{operation}"),
		metric.WithDescription("Operations on the state that replicas share that got nothing, by operation and class: alert on it."))
	if err != nil {
		return fmt.Errorf("gateway: instruments: %w", err)
	}
	available, err := meter.Int64ObservableGauge("ahp.gateway.shared.available",
		metric.WithDescription("1 while the state that replicas share is used, 0 while it cannot be had."))
	if err != nil {
		return fmt.Errorf("gateway: instruments: %w", err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		up := int64(0)
		if g.common.store.Outage() == shared.OK {
			up = 1
		}
		o.ObserveInt64(available, up)
		for _, op := range []shared.Operation{shared.Begin, shared.Finish, shared.Take} {
			observeFailures(o, failures, g.common.store, op)
		}
		return nil
	}, failures, available)
	if err != nil {
		return fmt.Errorf("gateway: instruments: %w", err)
	}
	return nil
}
