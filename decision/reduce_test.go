package decision

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

var reduce = flag.Bool("reduce", false, "reduce the chains on standard input, a JSON object a line, instead of testing: test/interop/reducer.py does")

func TestMain(m *testing.M) {
	flag.Parse()
	if !*reduce {
		os.Exit(m.Run())
	}
	if err := reduceAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// chainLine is one chain: a harness's request, and the effects that each
// backend answers in turn, with the event as it saw it where that was less.
type chainLine struct {
	Event        json.RawMessage `json:"event"`
	Capabilities json.RawMessage `json:"capabilities"`
	State        json.RawMessage `json:"state"`
	Asked        json.RawMessage `json:"asked"`
	Turns        []struct {
		Effects json.RawMessage `json:"effects"`
		Shown   json.RawMessage `json:"shown"`
		Closed  bool            `json:"closed"`
	} `json:"turns"`
}

// chainResult is what became of it: what was said to each backend that was
// called and whether its answer was accepted, and the composed answer.
type chainResult struct {
	Turns   []turnResult      `json:"turns"`
	Effects []json.RawMessage `json:"effects"`
	Inexact bool              `json:"inexact"`
	Code    ahp.Code          `json:"code"`
}

type turnResult struct {
	Event        json.RawMessage `json:"event"`
	State        json.RawMessage `json:"state,omitempty"`
	Capabilities json.RawMessage `json:"capabilities"`
	Sent         bool            `json:"sent"`
	Failure      string          `json:"failure"`
}

func reduceAll(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	results := json.NewEncoder(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var c chainLine
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		r, err := c.reduce()
		if err != nil {
			return err
		}
		if err := results.Encode(r); err != nil {
			return err
		}
	}
}

func null(raw json.RawMessage) []byte {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func (c *chainLine) reduce() (r chainResult, err error) {
	kind, ok := ahp.LookupEvent(ahp.Draft, string(ahp.Text(ahp.Member(c.Event, "type"))))
	if !ok {
		return r, fmt.Errorf("no event: %s", c.Event)
	}
	terms := ParseTerms(ahp.Draft, kind, c.Capabilities)
	terms.Asked = null(c.Asked)
	var s State
	s.Start(&terms, c.Event, null(c.State))
	for _, turn := range c.Turns {
		if s.Denied || s.Stopped {
			break
		}
		t := turnResult{
			Event: append(json.RawMessage(nil), s.Event...), State: s.AppendState(nil), Capabilities: s.AppendCapabilities(nil, c.Capabilities),
		}
		now, effects, failure := s.Terms(), []Effect(nil), s.Sendable()
		if t.Sent = failure.OK(); t.Sent {
			shown := null(turn.Shown)
			if shown == nil {
				shown = s.Event
			}
			effects, failure = Admit(&now, shown, &ahp.Response{Effects: turn.Effects}, nil)
		}
		switch {
		case failure.OK():
			s.Fold(effects, null(turn.Shown))
		case turn.Closed:
			s.FailClosed(failClosed)
		}
		if !failure.OK() {
			t.Failure = failure.String()
		}
		r.Turns = append(r.Turns, t)
	}
	a := s.Answer(nil)
	for _, raw := range a.Effects {
		r.Effects = append(r.Effects, raw)
	}
	r.Inexact, r.Code = a.Inexact, a.Code
	return r, nil
}
