package decision

import (
	"bytes"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// An elicitation's request and result travel as JSON inside of a text part.
// Hooks answer or edit them only where that part was shown and where the mode
// was advertised.

// isElicitResult reports whether raw is the result of an elicitation.
func isElicitResult(raw []byte) bool {
	if ahp.KindOf(raw) != ahp.KindObject {
		return false
	}
	action := false
	for name, value := range ahp.Members(raw) {
		switch string(name) {
		case "action":
			switch string(ahp.Text(value)) {
			case "accept", "cancel", "decline":
				action = true
			}
		case "content":
			if !isFormAnswers(value) {
				return false
			}
		case "_meta":
			if ahp.KindOf(value) != ahp.KindObject {
				return false
			}
		}
	}
	return action
}

// isFormAnswers reports whether raw is what can be filled into a form.
func isFormAnswers(raw []byte) bool {
	if ahp.KindOf(raw) != ahp.KindObject {
		return false
	}
	for _, value := range ahp.Members(raw) {
		switch ahp.KindOf(value) {
		case ahp.KindString, ahp.KindNumber, ahp.KindBool:
		default:
			if !isTexts(value) {
				return false
			}
		}
	}
	return true
}

// inlined returns the JSON object in an elicitation's text part, or nil where
// it was not shown or is no strict JSON object.
func inlined(part []byte) []byte {
	text := bytes.Trim(ahp.Text(ahp.Member(part, "text")), " \t\r\n")
	if ahp.KindOf(text) != ahp.KindObject || !ahp.Strict(text) || !finite(text) {
		return nil
	}
	return text
}

// question is an elicitation as it was asked.
type question struct {
	url  bool
	form []byte // the requested schema
}

// asked reads the request of a user.elicitation.request event. A question that
// was not shown, or that is none, has no answer.
func asked(event []byte) (q question, ok bool) {
	elicitation := ahp.Member(event, "elicitation")
	request := inlined(ahp.Member(elicitation, "request"))
	if request == nil || ahp.KindOf(ahp.Member(request, "message")) != ahp.KindString {
		return q, false
	}
	mode, told := []byte("form"), ahp.Member(request, "mode")
	if told != nil {
		mode = ahp.Text(told)
	}
	if !bytes.Equal(mode, ahp.Text(ahp.Member(elicitation, "mode"))) || !annotates(request) {
		return q, false
	}
	switch string(mode) {
	case "form":
		q.form = ahp.Member(request, "requestedSchema")
		return q, isForm(q.form)
	case "url":
		q.url = true
		return q, ahp.KindOf(ahp.Member(request, "elicitationId")) == ahp.KindString && ahp.IsURI(ahp.Text(ahp.Member(request, "url")))
	default:
		return q, false
	}
}

// annotates reports whether what a question says beside what it asks is of the
// kind that every reader expects.
func annotates(request []byte) bool {
	if meta := ahp.Member(request, "_meta"); meta != nil {
		if ahp.KindOf(meta) != ahp.KindObject {
			return false
		}
		token := ahp.Member(meta, "progressToken")
		if kind := ahp.KindOf(token); token != nil && kind != ahp.KindString && kind != ahp.KindNumber {
			return false
		}
	}
	if task := ahp.Member(request, "task"); task != nil {
		ttl := ahp.Member(task, "ttl")
		return ahp.KindOf(task) == ahp.KindObject && (ttl == nil || ahp.KindOf(ttl) == ahp.KindNumber)
	}
	return true
}

// IsQuestion reports whether event, a raw user.elicitation.request, shows what is
// asked, so that an answer can be held against it.
func IsQuestion(event []byte) bool {
	_, ok := asked(event)
	return ok
}

// grants reports whether the terms let hooks answer such a question.
func (t *Terms) grants(q question) bool {
	return q.url && t.URL || !q.url && t.Form
}

// accepts reports whether result, an elicitation's result, answers q.
func (q question) accepts(result []byte) bool {
	content := ahp.Member(result, "content")
	accepted := string(ahp.Text(ahp.Member(result, "action"))) == "accept"
	if (q.url || !accepted) && content != nil {
		return false
	}
	if q.url || !accepted {
		return true
	}
	if content == nil {
		content = []byte("{}")
	}
	return fillsIn(q.form, content)
}

// answerable reports whether hooks can deny or answer the question of event.
func (t *Terms) answerable(event []byte) (question, bool) {
	q, ok := asked(event)
	return q, ok && t.grants(q)
}

// admitAnswer checks what settles a question: a deny or an answer, of which a
// response holds one.
func admitAnswer(terms *Terms, shown []byte, effects []Effect) ahp.Failure {
	settled := false
	for i := range effects {
		e := &effects[i]
		if e.Type != ahp.EffectDeny && e.Type != ahp.EffectReturn {
			continue
		}
		if settled {
			return conflict("a question is settled twice")
		}
		settled = true
		q, ok := terms.answerable(shown)
		if !ok {
			return unadvertised("the question was not shown, or hooks do not settle questions of its mode")
		}
		if e.Type == ahp.EffectReturn && !q.accepts(e.Value) {
			return malformed("return.value does not answer the question")
		}
	}
	return ahp.Failure{}
}

// maxEdited is how many bytes the edits in one response may make the gateway
// look through: each has to leave an answer to the question behind.
const maxEdited = 16 << 20

// admitEdits checks edits of an answer against the question it answers.
func admitEdits(terms *Terms, shown []byte, effects []Effect) ahp.Failure {
	var q question
	var result []byte
	work := 0
	for i := range effects {
		e := &effects[i]
		if e.Type != ahp.EffectModify {
			continue
		}
		if result == nil {
			var ok bool
			if q, result, ok = terms.exchange(shown); !ok {
				return unadvertised("the answer and its question are not known, or hooks do not edit answers of their mode")
			}
		}
		if work += len(result) + len(q.form) + len(e.Value); work > maxEdited {
			return malformed("an answer is edited too often for its size")
		}
		edited, ok := edit(result, e)
		if !ok || !q.accepts(edited) {
			return malformed("modify.value makes no answer to the question")
		}
		result = edited
	}
	return ahp.Failure{}
}

// exchange reads a user.elicitation.result event and the question it answers,
// and reports whether they belong together and hooks may edit the answer.
func (t *Terms) exchange(event []byte) (q question, result []byte, ok bool) {
	if t.Asked == nil {
		return q, nil, false
	}
	q, ok = t.answerable(t.Asked)
	elicitation, before := ahp.Member(event, "elicitation"), ahp.Member(t.Asked, "elicitation")
	result = inlined(ahp.Member(elicitation, "result"))
	ok = ok && isElicitResult(result) && q.accepts(result) &&
		same(ahp.Member(event, "parentEventId"), ahp.Member(t.Asked, "id")) &&
		same(ahp.Member(event, "source"), ahp.Member(t.Asked, "source")) &&
		bytes.Equal(ahp.Text(ahp.Member(ahp.Member(event, "session"), "id")), ahp.Text(ahp.Member(ahp.Member(t.Asked, "session"), "id"))) &&
		same(ahp.Member(elicitation, "server"), ahp.Member(before, "server")) &&
		same(ahp.Member(elicitation, "mode"), ahp.Member(before, "mode")) &&
		same(ahp.Member(elicitation, "action"), ahp.Member(result, "action"))
	return q, result, ok
}

// same reports whether two raw values are the same string.
func same(a, b []byte) bool {
	return ahp.KindOf(a) == ahp.KindString && ahp.KindOf(b) == ahp.KindString && bytes.Equal(ahp.Text(a), ahp.Text(b))
}

// edit returns the result with e made to its content.
func edit(result []byte, e *Effect) (edited []byte, ok bool) {
	content := ahp.Member(result, "content")
	value := e.Value
	if e.Operation == Merge {
		if content == nil {
			return nil, false
		}
		value = mergeObjects(content, [][]byte{value})
	}
	if content == nil {
		return appendMember(nil, result, "content", value), true
	}
	start, end := part(result, content)
	return splice(nil, result, start, end, value), true
}
