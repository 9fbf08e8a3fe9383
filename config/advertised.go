package config

import (
	"regexp"
	"slices"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// maxAdvertised bounds how many subscriptions one backend may advertise: each
// is a call in a chain, and no operator has seen them.
const maxAdvertised = 128

// ParseConfiguration reads the configuration object, in JSON, that a draft
// backend advertises by hooks/configuration: the subscriptions it wants, under
// the rules of a registration document (AHP-REG-002, AHP-FAIL-001). name, the
// backend's id, is what mistakes call it. budget is that of the whole chain, 0
// for none, and shadow the backend's setting of that name.
//
// What is advertised and does not apply here is left out, each time with a
// warning: families without an event, subscriptions without a selector, and
// uploads, for which nobody has given permission. The attachments that would
// have been uploaded are then shown as metadata. So the list that is returned
// can be empty. Mistakes have no position and quote nothing, because a backend
// knows the credential that it is called with and may have written it anywhere.
func ParseConfiguration(name string, data []byte, budget time.Duration, shadow []string) ([]Subscription, []Mistake, error) {
	r := newReader(name, nil)
	var subs []Subscription
	if src := r.source(name); r.checkText(src, data) {
		if root := r.parseJSON(src, data); root != nil {
			d := &document{reader: r, terms: &terms{alone: true, budget: budget}, version: ahp.Draft, advertised: true}
			subs = d.configuration(spot{node: root}, shadow)
		}
	}
	warnings, err := r.result()
	withhold(warnings)
	if err != nil {
		withhold(AsMistakes(err))
		return nil, warnings, err
	}
	return subs, append(warnings, absent(name, subs, shadow)...), nil
}

func (d *document) configuration(s spot, shadow []string) []Subscription {
	o := d.object(s)
	o.portable = true
	at, ok := o.need("subscriptions", "write a list of at least one subscription")
	o.done()
	if !ok {
		return nil
	}
	if len(at.items) > maxAdvertised {
		d.mistake(at, "", "holds more than 128 subscriptions", "join those with the same terms")
		return nil
	}
	var subs []Subscription
	for i, sub := range d.subscriptions(at) {
		sub.Shadow = inShadow(shadow, sub.ID)
		if sub.Shadow && sub.Managed {
			d.warn(at.item(i), "", "is managed or not disableable, and in shadow", managedShadow)
		}
		if len(sub.Selectors) > 0 {
			subs = append(subs, sub)
		}
	}
	return subs
}

// refuseUpload leaves an advertised upload out of a subscription. An attachment
// that has not been uploaded is nothing to its backend, whose store has not got
// it, so its body is not shown.
func (d *document) refuseUpload(s spot, sub *Subscription) {
	if !d.is(s, kindObject, "write an object, or leave it out") {
		return
	}
	d.warn(s, "", "content upload is not supported yet, and an advertised one takes the operator's permission", "it is left out, and attachments are shown as metadata")
	for _, category := range []string{"images", "audio", "video", "files"} {
		if sub.Content.Of(category) != ahp.SelectBody {
			continue
		}
		if sub.Content.Categories == nil {
			sub.Content.Categories = make(map[string]ahp.Selection)
		}
		sub.Content.Categories[category] = ahp.SelectMetadata
	}
}

// absent warns of the ids of a shadow setting that are not advertised: the
// subscriptions they are meant for are enforced.
func absent(name string, subs []Subscription, shadow []string) []Mistake {
	if isEvery(shadow) {
		return nil
	}
	var warnings []Mistake
	for _, id := range shadow {
		if !slices.ContainsFunc(subs, func(s Subscription) bool { return s.ID == id }) {
			warnings = append(warnings, Mistake{
				File: name, Value: shown(id), What: "the backend advertises no subscription with this id, which is to be in shadow",
				Instead: `write the id member of one that it advertises, or "*" in quotes for all`, Warning: true,
			})
		}
	}
	return warnings
}

// advertisedPath is the part of a path in a configuration that holds nothing
// but the protocol's own names.
var advertisedPath = regexp.MustCompile(`^(?:subscriptions(?:\[[0-9]+\](?:\.(?:` +
	`(?:id|mode|timeoutMs|failurePolicy|includeNative|scope|disableable|upload)\b|` +
	`events\b(?:\[[0-9]+\])?|` +
	`content\b(?:\.(?:default|text|reasoning|images|audio|video|files)\b)?|` +
	`filters\b(?:\.(?:toolKinds|paths)\b(?:\[[0-9]+\])?)?))?)?)?`)

// withhold takes out of mistakes what a backend has written, and positions,
// which are those of no file.
func withhold(ms []Mistake) {
	for i := range ms {
		m := &ms[i]
		m.Line, m.Col, m.Value = 0, 0, ""
		m.Path = advertisedPath.FindString(m.Path)
	}
}
