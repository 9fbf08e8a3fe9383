package config

import (
	"strings"
	"time"
	"unicode"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// String returns the mode's name in a document, or "unknown".
func (m Mode) String() string {
	switch m {
	case Intercept:
		return "intercept"
	case Observe:
		return "observe"
	default:
		return "unknown"
	}
}

const maxSubscriptionID = 128 // bytes

func (d *document) subscriptions(s spot) []Subscription {
	if !d.is(s, kindList, "write a list of subscriptions") {
		return nil
	}
	if len(s.items) == 0 {
		d.mistake(s, "", "is an empty list", "write at least one subscription")
	}
	h := &hookScope{ids: make(map[string]string), events: make(map[eventMode]string)}
	var subs []Subscription
	for i := range s.items {
		subs = append(subs, d.subscription(s.item(i), h))
	}
	return subs
}

// hookScope finds what two subscriptions of one hook may not share.
type hookScope struct {
	ids    map[string]string    // id to the path of its subscription
	events map[eventMode]string // in 0.1, event and mode to the path of its subscription
}

type eventMode struct {
	event ahp.EventType
	mode  Mode
}

func (d *document) subscription(s spot, h *hookScope) Subscription {
	var sub Subscription
	o := d.object(s)
	o.portable = true
	if at, ok := o.get("id"); ok {
		sub.ID = d.subscriptionID(at, s.path, h)
	}
	events, hasEvents := o.need("events", "write a list of event names")
	if at, ok := o.need("mode", "write intercept or observe"); ok {
		switch word, _ := d.oneOf(at, "intercept", "observe"); word {
		case "intercept":
			sub.Mode = Intercept
		case "observe":
			sub.Mode = Observe
		}
	}
	if hasEvents {
		sub.Selectors = d.selectors(events, sub.Mode, s.path, h)
	}
	d.failurePolicy(o, &sub)
	o.boolean("includeNative", &sub.IncludeNative)
	d.content(o, &sub)
	if at, ok := o.get("filters"); ok {
		d.filters(at)
	}
	d.scope(o, &sub)
	o.done()
	return sub
}

func (d *document) subscriptionID(s spot, path string, h *hookScope) string {
	id, ok := d.text(s)
	if !ok {
		return ""
	}
	if id == "" || len(id) > maxSubscriptionID || id == "*" || strings.ContainsFunc(id, unicode.IsControl) {
		d.mistake(s, shown(id), `is empty, "*", longer than 128 bytes, or holds control characters`, "write a short name, or leave it out")
		return ""
	}
	if first, dup := h.ids[id]; dup {
		d.mistake(s, shown(id), "is the id of "+first+" too", "write another id")
		return id
	}
	h.ids[id] = path
	return id
}

// failurePolicy reads what intercept subscriptions need and observe ones may
// not have. AHP-FAIL-001, AHP-FAIL-002.
func (d *document) failurePolicy(o *object, sub *Subscription) {
	timeout, hasTimeout := o.get("timeoutMs")
	policy, hasPolicy := o.get("failurePolicy")
	if sub.Mode == Observe {
		for _, at := range []spot{timeout, policy} {
			if at.node != nil {
				d.mistake(at, "", "is not for an observe subscription", "remove it: nobody waits for an observer")
			}
		}
		return
	}
	if hasTimeout {
		if ms, ok := d.integer(timeout, 1, 600000); ok {
			sub.Timeout = time.Duration(ms) * time.Millisecond
			switch {
			case ms < 100 || ms > 30000:
				d.warn(timeout, itoa(ms), "is outside the range that every implementation supports", "write 100 to 30000")
			case d.terms.budget > 0 && sub.Timeout > d.terms.budget:
				d.warn(timeout, itoa(ms), "is longer than limits.budget of the whole chain, "+d.terms.budget.String(), "write a shorter timeout or a larger budget")
			}
		}
	} else if o.usable() && sub.Mode == Intercept {
		o.missing("timeoutMs", "write milliseconds, such as 750")
	}
	if hasPolicy {
		word, _ := d.oneOf(policy, "fail-open", "fail-closed")
		sub.FailClosed = word == "fail-closed"
	} else if o.usable() && sub.Mode == Intercept {
		o.missing("failurePolicy", "write fail-closed to deny when the backend cannot answer, or fail-open to go on without it")
	}
}

// content reads the content selection, which only draft has.
func (d *document) content(o *object, sub *Subscription) {
	if d.version != ahp.Draft {
		// A 0.1 document says nothing of content: done warns about the member.
		// Where the snapshot itself is unknown, nothing can be said of it.
		if d.version == 0 {
			o.get("content")
			o.get("upload")
		}
		return
	}
	upload, hasUpload := o.get("upload")
	if hasUpload && !d.advertised {
		d.mistake(upload, "", "content upload is not supported yet", "remove it")
	}
	at, ok := o.need("content", "write what the backend may see, such as {default: metadata}")
	if !ok || !d.is(at, kindObject, "write an object such as {default: metadata}") {
		return
	}
	found := false
	for _, f := range at.fields {
		category := at.member(f.key, f.value)
		word, ok := d.oneOf(category, "body", "metadata", "omit")
		found = found || f.key == "default"
		if !ok {
			continue
		}
		sel, _ := ahp.ParseSelection(word)
		switch {
		case f.key == "default":
			sub.Content.Default = sel
		case f.key == "" || len(f.key) > maxSubscriptionID:
			d.mistake(category, "", "is not the name of a category", "write text, reasoning, images, audio, video, files, or another name of at most 128 bytes")
		default:
			if sub.Content.Categories == nil {
				sub.Content.Categories = make(map[string]ahp.Selection)
			}
			sub.Content.Categories[f.key] = sel
		}
	}
	if !found {
		at.path = joinKey(at.path, "default")
		d.mistake(at, "", "is missing", "write default: body, metadata or omit")
	}
	if hasUpload && d.advertised {
		d.refuseUpload(upload, sub)
	}
}

// filters checks the shape of optimisation hints. They are kept out of every
// decision: a backend that is not called because of a hint could not deny.
func (d *document) filters(s spot) {
	o := d.object(s)
	o.portable = true
	for _, key := range []string{"toolKinds", "paths"} {
		if at, ok := o.get(key); ok {
			d.uniqueTexts(at, nil)
		}
	}
	o.done()
}

// scope reads who owns the subscription. One that may not be disabled fails
// closed whatever its failurePolicy says.
func (d *document) scope(o *object, sub *Subscription) {
	scope := ""
	o.choice("scope", &scope, "managed", "project", "user")
	disableable := true
	o.boolean("disableable", &disableable)
	if scope == "managed" && disableable {
		at, ok := o.get("disableable")
		switch {
		case !ok:
			o.missing("disableable", "write disableable: false, which scope: managed requires")
		case at.kind == kindBool && at.text == "true":
			d.mistake(at, "true", "scope: managed may not be disableable", "write false")
		}
	}
	sub.Managed = scope == "managed" || !disableable
	sub.FailClosed = sub.FailClosed || sub.Managed
}
