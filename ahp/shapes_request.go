package ahp

// The shapes of what stands beside the event in a request of draft.

// targets are all modify targets.
var targets = []string{"input", "output", "prompt", "request", "response", "content", "instructions", "summary", "workspace"}

// operations are what may be done to one target: at least one of two.
var operations = func() *shape {
	s := object(need("replace", boolean), need("merge", boolean)).named("operations", "What may be done to a modify target: at least one of the two.")
	return s.obeying(rule{when: []cond{hasNot("replace", bitTrue)}, must: []cond{has("merge", bitTrue)}, because: "allows no operation, nor does replace"})
}()

var (
	injectCapability = object(need("context", object(
		need("append", literally),
		need("deliverAt", set(deliverAt).some()),
	))).named("injectCapability", "When an injection can be delivered.")
	elicitationCapability = object(opt("form", opaque), opt("url", opaque))
	deliverAt             = enum("now", "next_turn")
)

// anyCapabilities are those of no event in particular.
var anyCapabilities = func() *shape {
	every := &shape{kind: shapeDotted, what: "effect or reverse-DNS name", values: effectNames[EffectDeny:]}
	var all []member
	for _, target := range targets {
		all = append(all, opt(target, operations))
	}
	modify := object(all...)
	modify.filled = true
	return capabilitiesOf("capabilities", "What a harness lets an answer do.", every, modify, flowOf("stop", "continue"), true)
}()

// capabilityShapes are those of one event each.
var capabilityShapes = func() (shapes [EventTypeCount]*shape) {
	for t := range EventTypeCount {
		b := t.Bounds()
		if b.Effects == 0 {
			continue
		}
		var modify, flow *shape
		if b.Target != "" {
			modify = closed(opt(b.Target, operations))
			modify.filled = true
		}
		switch {
		case b.Continue:
			flow = flowOf("stop", "continue")
		case b.Effects.Has(EffectFlow):
			flow = flowOf("stop")
		}
		shapes[t] = capabilitiesOf("capabilities."+t.String(), "What a harness lets an answer do at "+t.String()+".",
			enum(effectNamesOf(b.Effects)...), modify, flow, b.Effects.Has(EffectInject))
	}
	return shapes
}()

// effectNamesOf lists a set in the order of the effects.
func effectNamesOf(s EffectSet) []string {
	var names []string
	for e := range s.All() {
		names = append(names, e.String())
	}
	return names
}

func flowOf(operations ...string) *shape {
	s := object(
		need("operations", set(enum(operations...)).some()),
		opt("remainingContinuations", count),
		opt("continuationCount", count),
		opt("maxContinuations", count),
	)
	if len(operations) > 1 {
		s.obeying(rule{when: []cond{s.is("operations", "continue")}, need: []string{"remainingContinuations", "continuationCount"}})
	}
	return s
}

// capabilitiesOf says what effects may be named, and that an effect with
// particulars is named exactly where these are.
func capabilitiesOf(name, about string, effect, modify, flow *shape, inject bool) *shape {
	particulars := map[string]*shape{"modify": modify, "flow": flow}
	if inject {
		particulars["inject"] = injectCapability
	}
	members := []member{need("effects", set(effect)).asShown(), opt("elicitation", elicitationCapability)}
	for _, name := range []string{"modify", "flow", "inject"} {
		if of := particulars[name]; of != nil {
			members = append(members, opt(name, of))
		} else {
			members = append(members, ban(name))
		}
	}
	s := object(members...).named(name, about)
	for _, name := range []string{"modify", "flow", "inject"} {
		if particulars[name] != nil {
			s.obeying(
				rule{when: []cond{s.is("effects", name)}, need: []string{name}},
				rule{when: []cond{s.isNot("effects", name)}, ban: []string{name}, because: "without its effect"},
			)
		}
	}
	return s
}

// manifest is what a harness tells of itself at the start of a session.
var manifest = object(
	need("events", list(manifestEvent)),
	need("gaps", gaps),
	need("transports", set(enum("http", "stdio", "in_process"))),
	need("authentication", set(enum("bearer", "oauth"))),
	need("limits", object(opt("maxUploadBytes", count), opt("maxContinuations", count), opt("minTimeoutMs", count), opt("maxTimeoutMs", count))),
	need("toolPaths", set(filled)),
	need("contentCategories", set(filled)),
	need("managedPolicy", func() *shape {
		s := object(need("scopes", set(enum("user", "project", "managed"))), need("disableable", boolean))
		return s.obeying(rule{when: []cond{s.is("scopes", "managed")}, must: []cond{has("disableable", bitFalse)}, because: "is not false beside scope managed"})
	}()),
	need("correlationIdentityFields", set(filled)),
	ban("identity"),
).named("manifest", "What a harness can do.")

var manifestEvent = func() *shape {
	var all, observable []string
	for e := EventUnknown + 1; e < EventTypeCount; e++ {
		if e.In(Draft) {
			all = append(all, e.String())
			if !e.Interceptable(Draft) {
				observable = append(observable, e.String())
			}
		}
	}
	s := object(
		need("event", enum(all...)),
		need("modes", set(enum("observe", "intercept")).some()),
		opt("capabilities", anyCapabilities),
	).named("manifestEvent", "What a harness can do at one event.")
	s.obeying(
		rule{when: []cond{s.is("modes", "intercept")}, need: []string{"capabilities"}},
		rule{when: []cond{s.isNot("modes", "intercept")}, must: []cond{hasNot("capabilities", ^uint64(0))}, because: "has effects without mode intercept"},
		rule{when: []cond{s.is("event", observable...)}, must: []cond{s.isNot("modes", "intercept")}, because: "has intercept at an event that is observed only"},
	)
	for e, as := range capabilityShapes {
		if as != nil {
			s.obeying(rule{when: []cond{s.is("event", EventType(e).String())}, asOf: "capabilities", as: as})
		}
	}
	return s
}()

// The shapes of the answers in MCP's elicitation.
var (
	formAnswers = object().with(choice("string, number, boolean or list of strings", text, number, boolean, list(text))).
			named("formAnswers", "What a person filled into a form.")
	elicitResult = object(
		opt("_meta", opaque),
		need("action", enum("accept", "cancel", "decline")),
		opt("content", formAnswers),
	).named("elicitResult", "How a person answered an elicitation.")
)

// stateShapes are the shapes of params.state by event; a state of no event in
// particular is that of EventUnknown.
var stateShapes = func() (shapes [EventTypeCount]*shape) {
	shapes[EventUnknown] = stateOf("state", "What a boundary has settled so far.", anything)
	for t := EventUnknown + 1; t < EventTypeCount; t++ {
		shapes[t] = shapes[EventUnknown]
		if t.Bounds().Effects.Has(EffectReturn) && returnValue(t) != anything {
			shapes[t] = stateOf("state."+t.String(), "What "+t.String()+" has settled so far.", returnValue(t))
		}
	}
	return shapes
}()

func stateOf(name, about string, value *shape) *shape {
	return object(
		need("permission", enum("none", "allow", "ask", "deny")),
		need("candidate", choice("null or object with a value", null, object(need("value", value), opt("provenance", opaque)))),
		opt("flow", enum("none", "stop", "continue")),
		opt("instructions", list(filled)),
		opt("injections", list(injectEffect)),
	).named(name, about)
}
