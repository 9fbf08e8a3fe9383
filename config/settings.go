package config

import (
	"slices"
	"strings"
	"time"
)

// baseSettings are the settings of backends that have none of their own.
type baseSettings struct {
	BackendSettings
	hasPrivate bool // AllowPrivate was written, or AllowAddresses in place of it
}

// settings are what a tenant's backends section says.
type settings struct {
	base BackendSettings
	byID map[string]BackendSettings
	at   []hookSettings // as written, in document order
	// documents are the names of files that hold the tenant's documents.
	documents []string
}

type hookSettings struct {
	id     string
	at     spot
	shadow spot
}

// unread is the cause of a registration having nothing of some id: that where it
// stands, at a path of a document, could not be read.
func (s *settings) unread(w hookSettings, path string) cause {
	own, _, _ := strings.Cut(w.at.path, "backends[")
	c := cause{file: w.at.src.name, of: own + "registration." + path + "|" + own + "registration[]." + path}
	if len(s.documents) > 0 {
		c.others, c.among = path, strings.Join(s.documents, "\x00")
	}
	return c
}

// of returns the settings of one hook.
func (s *settings) of(id string) BackendSettings {
	if b, ok := s.byID[id]; ok {
		return b
	}
	return s.base
}

// settings reads a backends section: our own settings by hook id.
func (r *reader) settings(s spot, base BackendSettings) *settings {
	all := &settings{base: base, byID: make(map[string]BackendSettings)}
	if s.node == nil || !r.is(s, kindObject, "write an object from hook id to settings") {
		return all
	}
	for _, f := range s.fields {
		at := s.member(f.key, f.value)
		b := base
		o := r.object(at)
		r.backendMembers(o, &b)
		if ca, ok := o.get("caFile"); ok {
			b.CAFile = r.caFile(ca)
		}
		if ca, ok := o.get("issuerCAFile"); ok {
			b.IssuerCAFile = r.caFile(ca)
		}
		if br, ok := o.get("breaker"); ok {
			r.breaker(br, &b.Breaker)
		}
		shadow, ok := o.get("shadow")
		if ok {
			b.Shadow = r.shadow(shadow)
		}
		o.done()
		all.byID[f.key] = b
		all.at = append(all.at, hookSettings{f.key, at, shadow})
	}
	return all
}

// backendMembers reads the members that a default and a single backend share.
func (r *reader) backendMembers(o *object, b *BackendSettings) {
	o.boolean("allowHTTP", &b.AllowHTTP)
	if at, ok := o.get("allowAddresses"); ok {
		b.AllowAddresses = r.ranges(at)
		b.AllowPrivate = false // these in place of all, unless both are written
	}
	o.boolean("allowPrivate", &b.AllowPrivate)
	r.clientCertificate(o, b)
	o.count("inFlight", &b.InFlight, 1, maxCount)
	o.count("connections", &b.Connections, 1, maxCount)
	o.boolean("retry", &b.Retry)
}

func (r *reader) breaker(s spot, b *Breaker) {
	o := r.object(s)
	enabled := !b.Disabled
	o.boolean("enabled", &enabled)
	b.Disabled = !enabled
	o.duration("window", &b.Window)
	o.count("buckets", &b.Buckets, 1, 1000)
	o.count("volume", &b.Volume, 1, maxCount)
	o.number("ratio", &b.Ratio, "write failures per call, more than 0 and at most 1, such as 0.5",
		func(v float64) bool { return v > 0 && v <= 1 })
	o.duration("openFor", &b.OpenFor)
	o.count("probes", &b.Probes, 1, 1000)
	o.done()
	if b.Window/time.Duration(b.Buckets) < time.Millisecond {
		r.mistake(s, "", "the window is shorter than one millisecond for each of its buckets", "write a longer window or fewer buckets")
	}
}

const shadowInstead = `write a list of subscription ids, or "*" in quotes for all`

// shadow reads "*" or a list of subscription ids.
func (r *reader) shadow(s spot) []string {
	if s.kind == kindString && s.text == "*" {
		return []string{"*"}
	}
	if !r.is(s, kindList, shadowInstead) {
		return nil
	}
	var ids []string
	seen := make(map[string]bool)
	for i := range s.items {
		at := s.item(i)
		id, ok := r.text(at)
		switch {
		case !ok:
		case id == "*":
			r.mistake(at, "", "is a wildcard in a list", `write shadow: "*" without the list`)
		case seen[id]:
			r.mistake(at, shown(id), "is there twice", "keep one of them")
		default:
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// apply checks the backends section against the documents, marks the shadow
// subscriptions, and returns the settings of every hook.
func (r *reader) apply(all *settings, regs []*Registration) map[string]BackendSettings {
	hooks := make(map[string][]*Hook)
	var ids []string
	for _, reg := range regs {
		for i := range reg.Hooks {
			h := &reg.Hooks[i]
			hooks[h.ID] = append(hooks[h.ID], h)
			ids = append(ids, h.ID)
		}
	}
	for _, w := range all.at {
		if len(hooks[w.id]) == 0 {
			instead := "write the id of a hook of the registration"
			if near := r.nearest(w.id, ids); near != "" {
				instead = "did you mean " + near + "?"
			}
			r.unless(all.unread(w, "hooks[].id")).mistake(w.at, shown(w.id), "no hook has this id", instead)
			continue
		}
		if w.shadow.node != nil {
			r.applyShadow(all, w, all.byID[w.id].Shadow, hooks[w.id])
		}
	}
	complete := make(map[string]BackendSettings, len(hooks))
	for id := range hooks {
		complete[id] = all.of(id)
	}
	return complete
}

const managedShadow = "keep it only while the policy is being tried out: its decisions are not enforced"

// isEvery reports whether a shadow setting is that of every subscription.
func isEvery(shadow []string) bool { return slices.Equal(shadow, []string{"*"}) }

// inShadow reports whether a shadow setting names the subscription id, which
// may be "".
func inShadow(shadow []string, id string) bool {
	return isEvery(shadow) || id != "" && slices.Contains(shadow, id)
}

func (r *reader) applyShadow(all *settings, w hookSettings, shadow []string, hooks []*Hook) {
	found := make(map[string]bool)
	var ids []string
	// What a backend will advertise is not known before it is asked.
	unknown := slices.ContainsFunc(hooks, func(h *Hook) bool { return h.Discover })
	for _, h := range hooks {
		for i := range h.Subscriptions {
			sub := &h.Subscriptions[i]
			if sub.ID != "" {
				ids = append(ids, sub.ID)
			}
			if !inShadow(shadow, sub.ID) {
				continue
			}
			found[sub.ID] = true
			sub.Shadow = true
			if sub.Managed {
				r.warn(w.shadow, "", "puts a subscription in shadow that the registration calls managed or not disableable", managedShadow)
			}
		}
	}
	if unknown || isEvery(shadow) {
		return
	}
	for i := range w.shadow.items {
		at := w.shadow.item(i)
		if at.kind != kindString || at.text == "*" || found[at.text] {
			continue
		}
		instead := "write the id member of one of the hook's subscriptions"
		if near := r.nearest(at.text, ids); near != "" {
			instead = "did you mean " + near + "?"
		}
		r.unless(all.unread(w, "hooks[].subscriptions[].id")).mistake(at, shown(at.text), "no subscription of the hook has this id", instead)
	}
}
