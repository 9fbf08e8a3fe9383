package config

import (
	"regexp"
	"strings"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// documents reads a tenant's registration: a path, a document, or a list of
// these with at most one for each snapshot.
func (r *reader) documents(t *Tenant, registration, backends spot, defaults BackendSettings, budget time.Duration) {
	terms := &terms{
		role:     r.role,
		file:     registration.src.name,
		path:     strings.TrimSuffix(strings.TrimSuffix(registration.path, "registration"), "."),
		grant:    t.Secrets,
		tenant:   t.ID,
		settings: r.settings(backends, defaults),
		budget:   budget,
	}
	items := []spot{registration}
	if registration.kind == kindList {
		items = items[:0]
		for i := range registration.items {
			items = append(items, registration.item(i))
		}
		if len(items) == 0 {
			r.unread(registration, "", "is an empty list", "write at least one registration document")
		}
	}
	first := make(map[ahp.Version]string)
	for _, at := range items {
		doc := at
		if at.kind == kindString {
			terms.settings.documents = append(terms.settings.documents, r.resolve(at.text))
			var ok bool
			if doc, ok = r.document(at); !ok {
				continue
			}
		} else if at.kind != kindObject {
			r.is(at, kindObject, "write the path of a registration document, the document itself, or a list of these with one for each snapshot")
			continue
		}
		reg := r.registration(doc, terms)
		if reg.Version != 0 {
			if path, dup := first[reg.Version]; dup {
				r.mistake(at, "", "is a second document of snapshot "+reg.Version.String()+", besides "+path, "join the hooks of both in one document")
				continue
			}
			first[reg.Version] = at.path
		}
		t.Registrations = append(t.Registrations, reg)
	}
	t.Backends = r.apply(terms.settings, t.Registrations)
}

var reverseDNS = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z0-9_-]*\.)+[A-Za-z][A-Za-z0-9_-]*$`)

// maxHookID bounds a hook id, which becomes a metric label, in bytes.
const maxHookID = 253

func isReverseDNS(s string) bool { return len(s) <= maxHookID && reverseDNS.MatchString(s) }

// registration reads one document (AHP-REG-001). It always returns one; where
// mistakes were reported it must not be used.
func (r *reader) registration(s spot, t *terms) *Registration {
	reg := new(Registration)
	if isGateway(s) {
		r.mistake(s, "", "is a gateway file, not a registration document", "check it with validate --config, or write protocolVersion and hooks")
		return reg
	}
	o := r.object(s)
	o.portable = true
	if at, ok := o.need("protocolVersion", `write "0.1" or "draft"`); ok {
		reg.Version = r.version(at)
	}
	hooks, ok := o.need("hooks", "write a list of backends")
	o.done()
	if !ok || !r.is(hooks, kindList, "write a list of backends") {
		return reg
	}
	if len(hooks.items) == 0 {
		r.mistake(hooks, "", "is an empty list", "write at least one backend")
	}
	d := &document{reader: r, terms: t, version: reg.Version, ids: make(map[string]string), urls: make(map[string]string)}
	for i := range hooks.items {
		reg.Hooks = append(reg.Hooks, d.hook(hooks.item(i)))
	}
	return reg
}

// isRegistration and isGateway tell the two documents apart by the members that
// one has to have and the other has not got, so that a person who took one for
// the other reads that, and not that every member is unknown.
func isRegistration(s spot) bool {
	return s.has("hooks") && !s.has("registration") && !hasTenants(s)
}

func isGateway(s spot) bool {
	return !s.has("hooks") && (s.has("registration") || hasTenants(s))
}

// hasTenants reports whether the value at s says who the tenants are, as only a
// gateway file does.
func hasTenants(s spot) bool { return s.has("tenants") || s.has("tenantsDir") }

func (r *reader) version(s spot) ahp.Version {
	// YAML reads 0.1 without quotes as a number; nothing else can be meant.
	if s.plain && s.kind == kindNumber && s.text == "0.1" {
		return ahp.V01
	}
	text, ok := r.text(s)
	if !ok {
		return 0
	}
	v, ok := ahp.ParseVersion(text)
	if !ok {
		r.mistake(s, shown(text), "is not a snapshot that this gateway speaks", `write "0.1" or "draft"`)
	}
	return v
}

// document is one registration document while it is read.
type document struct {
	*reader
	terms   *terms
	version ahp.Version // 0 where it is wrong: rules of a snapshot are then skipped
	// advertised is set for subscriptions that a backend wants, which no person
	// wrote: what does not apply to this gateway is left out of them.
	advertised bool
	id         string // of the hook that is being read
	ids        map[string]string
	urls       map[string]string // url to the path of its first hook
}

const noLiteral = "write authentication: {type: bearer, tokenEnv: NAME} or tokenRef, or a header with valueEnv or valueRef"

func (d *document) hook(s spot) Hook {
	var h Hook
	o := d.object(s)
	o.portable = true
	d.id = ""
	if at, ok := o.need("id", "write a unique reverse-DNS name such as com.example.policy"); ok {
		h.ID = d.hookID(at, s.path)
		d.id = h.ID
	}
	stdio := false
	if at, ok := o.need("transport", `write {type: http, url: "https://…"}`); ok {
		stdio = d.transport(at, &h)
	}
	if at, ok := o.get("authentication"); ok {
		if stdio {
			d.mistake(at, "", "is not for a stdio transport", "remove it")
		} else {
			d.authentication(at, &h)
			switch own := hasHeader(h.Headers, "Authorization"); {
			case own && h.Bearer != nil:
				d.warn(at, "", "is replaced by the Authorization header of transport.headers", "keep one of them")
			case own && h.OAuth != nil:
				d.mistake(at, "", "obtains a token in vain, because transport.headers has an Authorization header", "keep one of them")
			}
		}
	}
	if at, ok := o.get("subscriptions"); ok {
		h.Subscriptions = d.subscriptions(at)
	} else if d.version == ahp.Draft {
		h.Discover = true
	} else if o.usable() && d.version == ahp.V01 {
		o.missing("subscriptions", "write a list of at least one subscription")
	}
	if at, ok := o.get("contentReceiver"); ok {
		if d.version == ahp.Draft {
			d.mistake(at, "", "is not a member of a hook in draft", "remove it")
		} else {
			d.warn(at, "", "unknown key", "remove it: it is ignored")
		}
	}
	o.refuseLiterals(noLiteral)
	o.done()
	return h
}

func (d *document) hookID(s spot, path string) string {
	id, ok := d.text(s)
	if !ok {
		return ""
	}
	if !isReverseDNS(id) {
		d.mistake(s, shown(id), "is not a reverse-DNS name of at most 253 bytes", "write labels of letters, digits, - and _ joined by dots, each starting with a letter, such as com.example.policy")
		return id
	}
	if first, dup := d.ids[id]; dup {
		d.mistake(s, shown(id), "is the id of "+first+" too", "write another id, or join the subscriptions in one hook")
		return id
	}
	d.ids[id] = path
	return id
}
