package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// AppendJSON appends r to dst as one JSON object followed by a newline and
// returns the extended slice. The result is valid JSON in valid UTF-8 whatever
// bytes the strings hold, and the object itself contains no line break of any
// kind. Nothing of r is kept.
//
// Members are snake_case and in a fixed order. time is RFC 3339 with
// nanoseconds in UTC; duration_us is a whole number of microseconds. Empty
// members are left out. truncated lists the members whose strings were cut.
func AppendJSON(dst []byte, r *Record) []byte {
	e := encoder{buf: dst}
	e.buf = append(e.buf, `{"time":"`...)
	e.buf = r.Time.UTC().AppendFormat(e.buf, time.RFC3339Nano)
	e.buf = append(e.buf, '"')
	e.text(keyTenant, r.Tenant)
	e.text(keyVersion, r.Version)
	e.text(keyMethod, r.Method)
	e.text(keyEventID, r.EventID)
	e.text(keySource, r.Source)
	e.text(keyEventType, r.EventType)
	e.text(keySessionID, r.SessionID)
	e.text(keyCallID, r.CallID)
	e.text(keyTool, r.Tool)
	if !r.Shadow && r.Change == nil {
		e.name(`,"verdict":"`, r.Verdict.String())
	}
	e.flag(`,"synthetic":true`, r.Synthetic)
	e.text(keyCode, r.Code)
	e.text(keyReason, r.Reason)
	e.number(`,"error_code":`, int64(r.ErrorCode))
	e.text(keyDeniedBy, r.DeniedBy)
	e.text(keySubscription, r.Subscription)
	if d := r.Dedupe.String(); d != "" {
		e.name(`,"dedupe":"`, d)
	}
	e.flag(`,"shadow":true`, r.Shadow)
	e.flag(`,"inexact":true`, r.Inexact)
	if r.Generation != 0 {
		e.buf = append(e.buf, `,"generation":`...)
		e.buf = strconv.AppendUint(e.buf, r.Generation, 10)
	}
	e.number(`,"duration_us":`, r.Duration.Microseconds())
	e.text(keyTraceID, r.TraceID)
	e.input(r.Input)
	e.truncated()
	e.steps(r.Steps)
	if r.Change != nil {
		e.change(r.Change)
	}
	return append(e.buf, '}', '\n')
}

// encoder appends members and remembers which of them it had to cut.
type encoder struct {
	buf []byte
	cut uint32 // bit i set: the member textKeys[i] was cut
}

// The members that hold text, as indexes of textKeys.
const (
	keyTenant = iota
	keyVersion
	keyMethod
	keyEventID
	keySource
	keyEventType
	keySessionID
	keyCallID
	keyTool
	keyCode
	keyReason
	keyDeniedBy
	keySubscription
	keyTraceID
	keyInput
	keyBackend
	keyDetail
	keyBy
	keyAction
	keySecret
	keyBefore
	keyAfter
	textKeyCount
)

// textKeys hold each member's name with the punctuation around it.
var textKeys = [textKeyCount]string{
	keyTenant:       `,"tenant":`,
	keyVersion:      `,"version":`,
	keyMethod:       `,"method":`,
	keyEventID:      `,"event_id":`,
	keySource:       `,"source":`,
	keyEventType:    `,"event_type":`,
	keySessionID:    `,"session_id":`,
	keyCallID:       `,"call_id":`,
	keyTool:         `,"tool":`,
	keyCode:         `,"code":`,
	keyReason:       `,"reason":`,
	keyDeniedBy:     `,"denied_by":`,
	keySubscription: `,"subscription":`,
	keyTraceID:      `,"trace_id":`,
	keyInput:        `,"input":`,
	keyBackend:      `,"backend":`,
	keyDetail:       `,"detail":`,
	keyBy:           `,"by":`,
	keyAction:       `,"action":`,
	keySecret:       `,"secret":`,
	keyBefore:       `,"before":`,
	keyAfter:        `,"after":`,
}

func (e *encoder) text(key int, s string) {
	if s == "" {
		return
	}
	if len(s) > MaxString {
		s = cutString(s, MaxString)
		e.cut |= 1 << key
	}
	e.buf = append(e.buf, textKeys[key]...)
	e.buf = appendString(e.buf, s)
}

// name appends a value of our own that needs no escaping.
func (e *encoder) name(key, value string) {
	e.buf = append(e.buf, key...)
	e.buf = append(e.buf, value...)
	e.buf = append(e.buf, '"')
}

func (e *encoder) flag(member string, set bool) {
	if set {
		e.buf = append(e.buf, member...)
	}
}

func (e *encoder) number(key string, n int64) {
	if n != 0 {
		e.buf = append(e.buf, key...)
		e.buf = strconv.AppendInt(e.buf, n, 10)
	}
}

func (e *encoder) input(input []byte) {
	if len(input) == 0 {
		return
	}
	e.buf = append(e.buf, textKeys[keyInput]...)
	if len(input) <= MaxInput && bytes.IndexByte(input, '\n') < 0 && bytes.IndexByte(input, '\r') < 0 &&
		utf8.Valid(input) && json.Valid(input) {
		e.buf = append(e.buf, input...)
		return
	}
	if len(input) > MaxInput {
		e.cut |= 1 << keyInput
	}
	e.buf = appendString(e.buf, cutString(string(input), MaxInput))
}

// truncated lists what was cut so far and starts anew: outside of the strings
// themselves, so that no caller can forge it or have it mistaken for text.
func (e *encoder) truncated() {
	if e.cut == 0 {
		return
	}
	e.buf = append(e.buf, `,"truncated":[`...)
	first := true
	for key, punctuated := range textKeys {
		if e.cut&(1<<key) == 0 {
			continue
		}
		if !first {
			e.buf = append(e.buf, ',')
		}
		first = false
		e.buf = append(e.buf, punctuated[1:len(punctuated)-1]...)
	}
	e.buf = append(e.buf, ']')
	e.cut = 0
}

func (e *encoder) steps(steps []Step) {
	if len(steps) == 0 {
		return
	}
	omitted := max(len(steps)-MaxSteps, 0)
	e.buf = append(e.buf, `,"steps":[`...)
	for i := range steps[:len(steps)-omitted] {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.step(&steps[i])
	}
	e.buf = append(e.buf, ']')
	e.number(`,"steps_omitted":`, int64(omitted))
}

func (e *encoder) step(s *Step) {
	e.name(`{"outcome":"`, s.Outcome.String())
	e.text(keyBackend, s.Backend)
	e.text(keySubscription, s.Subscription)
	e.effects(s.Effects)
	if s.Class != ahp.NoFailure {
		e.name(`,"failure":"`, s.Class.String())
	}
	e.text(keyDetail, s.Detail)
	e.number(`,"duration_us":`, s.Duration.Microseconds())
	e.truncated()
	e.buf = append(e.buf, '}')
}

func (e *encoder) change(c *Change) {
	e.name(`,"change":{"outcome":"`, c.Outcome())
	e.number(`,"status":`, int64(c.Status))
	e.text(keyAction, c.Action)
	e.text(keyBy, c.By)
	e.text(keySecret, c.Secret)
	e.text(keyBefore, c.Before)
	e.text(keyAfter, c.After)
	e.truncated()
	e.buf = append(e.buf, '}')
}

func (e *encoder) effects(set ahp.EffectSet) {
	separator := `,"effects":["`
	for effect := range set.All() {
		e.buf = append(e.buf, separator...)
		e.buf = append(e.buf, effect.String()...)
		separator = `","`
	}
	if set != 0 {
		e.buf = append(e.buf, `"]`...)
	}
}
