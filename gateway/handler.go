package gateway

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/audit"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
	"github.com/ahp-gateway/ahp-gateway/shared"
	"github.com/ahp-gateway/ahp-gateway/tenant"
)

const jsonType = "application/json"

// handle serves the public listener. It is called by fasthttp on a goroutine
// of the connection; nothing of ctx outlives it.
func (g *Gateway) handle(ctx *fasthttp.RequestCtx) {
	defer func() {
		if r := recover(); r != nil {
			g.panicked("request", r)
			ctx.Response.Reset()
			answer(ctx, ahp.AppendError(nil, nil, &ahp.Error{Code: ahp.CodeInternal, Message: "Internal error"}))
			ctx.SetConnectionClose()
		}
	}()
	if g.draining.Load() {
		ctx.SetConnectionClose()
	}
	if fault := framingFault(&ctx.Request.Header); fault != "" {
		g.refuse(ctx, refusedFraming, fasthttp.StatusBadRequest, fault)
		ctx.SetConnectionClose()
		return
	}
	path, fault := target(ctx.Request.Header.RequestURI(), ctx.Path())
	if fault != "" {
		g.refuse(ctx, refusedFraming, fasthttp.StatusBadRequest, fault)
		ctx.SetConnectionClose()
		return
	}
	name, ok := endpoint(path)
	if !ok {
		if g.serveMetadata(ctx, path) {
			return
		}
		g.refuse(ctx, refusedPath, fasthttp.StatusNotFound, "no such endpoint: POST to /hooks")
		ctx.SetConnectionClose()
		return
	}
	body := ctx.PostBody()
	if !ctx.IsPost() {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, fasthttp.MethodPost)
		g.refuse(ctx, refusedMethod, fasthttp.StatusMethodNotAllowed, "POST required")
		// Not every reader sees a body behind every other method.
		ctx.SetConnectionClose()
		return
	}
	if !isJSON(ctx.Request.Header.ContentType()) {
		g.refuse(ctx, refusedMediaType, fasthttp.StatusUnsupportedMediaType, "Content-Type must be application/json")
		ctx.SetConnectionClose()
		return
	}
	if len(ctx.Request.Header.ContentEncoding()) > 0 {
		g.refuse(ctx, refusedMediaType, fasthttp.StatusUnsupportedMediaType, "Content-Encoding is not supported")
		ctx.SetConnectionClose()
		return
	}
	snap := g.current.Load()
	now := time.Now()
	if trust := g.clients.Load(); trust != nil && trust.required && !g.clientHolds(ctx.Conn(), now) {
		g.refuse(ctx, refusedCredential, fasthttp.StatusForbidden, "a client certificate that holds is required")
		ctx.SetConnectionClose()
		return
	}
	who := tenant.Request{Authorization: ctx.Request.Header.Peek(fasthttp.HeaderAuthorization), Path: name, Now: now}
	if snap.tenants.KnowsNames() {
		who.Names = g.clientNames(ctx.Conn(), now)
	}
	party, verdict := snap.tenants.Authenticate(who)
	if verdict.Result != tenant.OK {
		g.unauthorized(ctx, snap, name, verdict)
		if g.clients.Load() != nil { // a client with a newer certificate shows it on another connection
			ctx.SetConnectionClose()
		}
		return
	}
	if !g.enter(ctx, snap, party) {
		return
	}
	defer g.places.Leave(party.seat)
	if denied, wait := party.limiter.Acquire(); denied != tenant.Admitted {
		g.throttle(ctx, party, denied, wait)
		return
	}
	defer party.limiter.Release()
	if large := int64(len(body)); large > freeBody && len(snap.parties) > 1 {
		if !g.carry(ctx, party, large) {
			return
		}
		defer g.answering.give(party.bodies, large)
	}
	if party.allowance != nil {
		if denied, wait := party.allowance.take(time.Now()); denied != tenant.Admitted {
			g.throttle(ctx, party, denied, wait)
			return
		}
	}
	g.serve(ctx, snap, party, body, now)
}

// endpoint returns the tenant that a path names, "" for /hooks, and whether
// there is such an endpoint at all.
func endpoint(path []byte) (tenant string, ok bool) {
	if string(path) == "/hooks" {
		return "", true
	}
	rest, ok := bytes.CutPrefix(path, []byte("/t/"))
	if !ok {
		return "", false
	}
	id, ok := bytes.CutSuffix(rest, []byte("/hooks"))
	if !ok || len(id) == 0 || bytes.IndexByte(id, '/') >= 0 {
		return "", false
	}
	return string(id), true
}

// serve decodes one admitted message, which came at the time came, and answers it.
func (g *Gateway) serve(ctx *fasthttp.RequestCtx, snap *snapshot, p *party, body []byte, came time.Time) {
	x := g.acquire(snap, p, came)
	defer g.release(x)
	if err := ahp.Decode(body, &x.msg); err != nil {
		if x.msg.Notification {
			p.stats.invalid.Add(1)
			ctx.SetStatusCode(fasthttp.StatusNoContent)
			return
		}
		g.fail(ctx, x, err)
		return
	}
	doc := p.documents[x.msg.Version]
	switch x.msg.Method {
	case ahp.MethodObserve:
		g.notify(x, doc, &ctx.Request.Header)
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	case ahp.MethodIntercept:
		switch {
		case doc == nil:
			g.fail(ctx, x, unsupportedVersion)
		default:
			g.intercept(ctx, x, doc)
		}
	default:
		switch {
		case x.msg.Notification:
			p.stats.invalid.Add(1)
			ctx.SetStatusCode(fasthttp.StatusNoContent)
		case doc == nil:
			g.fail(ctx, x, unsupportedVersion)
		case x.msg.Method == ahp.MethodConfiguration && doc.configuration != nil:
			x.answer = ahp.AppendConfiguration(x.begin(), x.msg.ID, x.msg.Version, doc.configuration)
			answer(ctx, x.answer[noteSize:])
		case x.msg.Method == ahp.MethodCapabilities:
			x.answer = ahp.AppendManifest(x.begin(), x.msg.ID, x.msg.Version, manifest)
			answer(ctx, x.answer[noteSize:])
		default:
			g.fail(ctx, x, &ahp.Error{Code: ahp.CodeMethodNotFound, Message: "Method not found"})
		}
	}
}

var unsupportedVersion = &ahp.Error{Code: ahp.CodeUnsupportedVersion, Message: "Unsupported AHP protocol version"}

// fail answers a JSON-RPC error before a chain was reached.
func (g *Gateway) fail(ctx *fasthttp.RequestCtx, x *exchange, err *ahp.Error) {
	x.party.stats.answered(err.Code)
	x.fail(err)
	answer(ctx, x.answer[noteSize:])
}

// intercept answers a valid hooks/intercept: with the known answer, with that
// of an equal request in flight, or with what the chain decides.
func (g *Gateway) intercept(ctx *fasthttp.RequestCtx, x *exchange, doc *document) {
	g.startRequest(x, &ctx.Request.Header)
	g.fingerprints.Make(&x.fingerprint, x.msg.Body)
	known, how, lead := x.party.answers.Begin(dedupe.KeyOf(x.msg.Event.Source, x.msg.Event.ID), x.fingerprint, x.deadline)
	var lease *shared.Lease // nil unless replicas share what they know
	if lead != nil {
		// Whatever happens to the leader, those that joined are let go.
		defer lead.Finish(nil, false)
		if g.common != nil {
			known, how, lease = g.common.ask(x, doc)
			defer lease.Finish(nil, 0)
		}
	}
	x.party.stats.dedupe[how].Add(1)
	x.dedupe = how
	switch how {
	case dedupe.Hit, dedupe.Joined:
		x.answer = append(x.answer[:0], known...)
		x.readNote(doc)
		if lead != nil {
			x.tell(doc)
			lead.Finish(x.answer, false)
		}
	case dedupe.TimedOut, dedupe.Abandoned:
		x.fail(unavailable)
	case dedupe.Miss:
		x.evaluate(doc)
		lead.Finish(x.answer, x.final())
		if lease != nil {
			g.common.leave(x, lease)
		}
	default:
		x.evaluate(doc)
		if lead != nil {
			lead.Finish(x.answer, false)
		}
	}
	answer(ctx, x.answer[noteSize:])
	if lead != nil && how == dedupe.Abandoned {
		x.dedupe = dedupe.Miss // nobody evaluates it but this request, which may not now
	}
	if how == dedupe.Miss || how == dedupe.Conflict {
		x.settle(doc)
	}
	endRequest(x)
	g.account(x)
}

// evaluate decides a message that nobody has decided yet. Its event counts as
// told of from here on: those that are asked get no second copy from the
// harness, and observers hear of it when it is settled.
func (x *exchange) evaluate(doc *document) {
	x.tell(doc)
	x.decide(doc)
}

// tell remembers of an event that it is told of, here or by another replica.
func (x *exchange) tell(doc *document) {
	if x.msg.Version == ahp.Draft {
		x.party.observed.Add(occurrence(&x.msg))
		x.learn(doc)
	}
}

// dedupeNames are the audit record's words for what the event-id cache knew.
var dedupeNames = [...]audit.Dedupe{
	dedupe.Miss:      audit.DedupeMiss,
	dedupe.Hit:       audit.DedupeHit,
	dedupe.Joined:    audit.DedupeJoined,
	dedupe.Conflict:  audit.DedupeConflict,
	dedupe.TimedOut:  audit.DedupeJoined,
	dedupe.Abandoned: audit.DedupeJoined,
}

// notify takes a hooks/observe: observers get it and, in draft, so do the
// interceptors that would have been asked, unless the gateway has told them of
// the event already.
func (g *Gateway) notify(x *exchange, doc *document, h *fasthttp.RequestHeader) {
	if doc == nil {
		x.party.stats.invalid.Add(1)
		return
	}
	x.learn(doc)
	if !x.party.observed.Add(occurrence(&x.msg)) {
		x.party.stats.repeated.Add(1)
		return
	}
	x.party.stats.observed.Add(1)
	x.trace = incoming(h)
	to := doc.of(x.msg.Event.Type)
	hops := to.observe
	if x.msg.Version == ahp.Draft {
		hops = slices.Concat(hops, to.intercept)
	}
	g.observe(x.msg.Body, x.msg.Version, x.trace, hops...)
}

// answer writes a JSON-RPC message. Errors travel with status 200 as well.
func answer(ctx *fasthttp.RequestCtx, body []byte) {
	ctx.SetStatusCode(fasthttp.StatusOK)
	ctx.SetContentType(jsonType)
	ctx.Response.SetBody(body)
}

// refuse answers a request that is no message yet.
func (g *Gateway) refuse(ctx *fasthttp.RequestCtx, r refusal, status int, why string) {
	g.stats.refused[r].Add(1)
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.Response.SetBodyString(why + "\n")
}

// retryAfter tells the caller when to come back, in whole seconds.
func retryAfter(ctx *fasthttp.RequestCtx, d time.Duration) {
	seconds := int64((d + time.Second - 1) / time.Second)
	ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.FormatInt(max(1, seconds), 10))
}

// unreadable answers what fasthttp could not read as a request. The connection
// is closed behind it.
func (g *Gateway) unreadable(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var late interface{ Timeout() bool } // of package net and of fasthttp
	switch {
	case errors.Is(err, errBusy):
		retryAfter(ctx, time.Second)
		g.refuse(ctx, refusedBodies, fasthttp.StatusServiceUnavailable, errBusy.Error())
	case errors.Is(err, errFraming):
		g.refuse(ctx, refusedFraming, fasthttp.StatusBadRequest, errFraming.Error())
	case errors.As(err, &small):
		g.refuse(ctx, refusedHeaderSize, fasthttp.StatusRequestHeaderFieldsTooLarge, "the header is too large")
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		g.refuse(ctx, refusedBodySize, fasthttp.StatusRequestEntityTooLarge, "the body is too large")
	case errors.As(err, &late) && late.Timeout():
		g.refuse(ctx, refusedTimeout, fasthttp.StatusRequestTimeout, "the request took too long")
	default:
		g.refuse(ctx, refusedMalformed, fasthttp.StatusBadRequest, "malformed request")
	}
	ctx.SetConnectionClose()
}

// acquire returns an exchange for one request, whose time runs from came on:
// what its credential took is the harness's time too.
func (g *Gateway) acquire(snap *snapshot, p *party, came time.Time) *exchange {
	x := g.exchanges.Get().(*exchange)
	x.g, x.snap, x.party = g, snap, p
	x.ctx = context.Background()
	x.start = came
	x.deadline = x.start.Add(snap.budget)
	return x
}

// The largest buffers that an exchange keeps for its next request, in bytes and
// in effects or steps, and how many projections keep theirs.
const (
	maxKept            = 16 << 10
	maxKeptItems       = 64
	maxKeptProjections = 4
)

// release empties an exchange and returns it to the pool.
func (g *Gateway) release(x *exchange) {
	x.state.Reset()
	*x = exchange{
		resp:    ahp.Response{Body: keep(x.resp.Body, maxKept)},
		request: keep(x.request, maxKept), capabilities: keep(x.capabilities, maxKept), told: keep(x.told, maxKept),
		projections: keepBuffers(x.projections),
		answer:      keep(x.answer, maxKept),
		effects:     forget(x.effects),
		said:        forget(x.said),
		state:       x.state,
		steps:       forget(x.steps),
	}
	g.exchanges.Put(x)
}

// keep returns a buffer, emptied, for reuse, unless one large message has grown
// it beyond max.
func keep[T any](b []T, max int) []T {
	if cap(b) > max {
		return nil
	}
	return b[:0]
}

// forget is keep for what points elsewhere: nothing of that is kept alive.
func forget[T any](b []T) []T {
	clear(b)
	return keep(b, maxKeptItems)
}

// keepBuffers is keep for the buffers of projections.
func keepBuffers(p []projection) []projection {
	if cap(p) > maxKeptProjections {
		return nil
	}
	p = p[:cap(p)]
	for i := range p {
		p[i] = projection{buffer: keep(p[i].buffer, maxKept)}
	}
	return p[:0]
}
