package gateway

import (
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/decision"
	"github.com/ahp-gateway/ahp-gateway/dedupe"
)

// How many questions of a tenant are remembered, in how many bytes, and for how
// long a user may think about an answer.
const (
	questionEntries = 1024
	questionBytes   = 4 << 20
	questionsFor    = 24 * time.Hour
)

// questions are the user.elicitation.request events of one tenant. A hook may
// edit a user.elicitation.result only into what its question asks for, and the
// result does not repeat the question.
type questions struct{ asked *dedupe.Cache }

func newQuestions() questions {
	return questions{dedupe.New(dedupe.Settings{Entries: questionEntries, Bytes: questionBytes, TTL: questionsFor})}
}

// learn remembers what the message asks, if there are hooks for its answer.
func (x *exchange) learn(doc *document) {
	if x.msg.Event.Type == ahp.UserElicitationRequest && len(doc.of(ahp.UserElicitationResult).intercept) > 0 {
		x.party.questions.add(&x.msg)
	}
}

// add remembers a question that shows what is asked. The first of one source
// and event id counts.
func (q questions) add(m *ahp.Message) {
	if !decision.IsQuestion(m.Event.Raw) {
		return
	}
	_, _, first := q.asked.Begin(dedupe.KeyOf(m.Event.Source, m.Event.ID), dedupe.Fingerprint{}, time.Time{})
	if first != nil {
		first.Finish(m.Event.Raw, true)
	}
}

// of returns the raw question that a user.elicitation.result answers, or nil if
// it is not known. It must not be modified.
func (q questions) of(m *ahp.Message) []byte {
	return q.asked.Known(dedupe.KeyOf(m.Event.Source, ahp.Text(ahp.Member(m.Event.Raw, "parentEventId"))))
}
