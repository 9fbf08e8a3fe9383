package decision

import "github.com/ahp-gateway/ahp-gateway/ahp"

// lineage remembers whose the messages and parts of one event are: a message
// keeps its role and a part its message for as long as the session lasts, and a
// harness does not send an event in which one has moved. Only what this
// exchange has seen is known here. The zero value knows nothing.
type lineage struct {
	roles  map[string]string // of messages and of parts
	owners map[string]string // of parts: their message
}

// carries reports whether the event's modify target is a list of messages.
func carries(e ahp.EventType) bool {
	switch e {
	case ahp.TurnStart, ahp.TurnFinishBefore, ahp.ModelRequestBefore, ahp.ModelResponseAfter, ahp.ToolAfter:
		return true
	}
	return false
}

// learn takes in a target that was sent.
func (l *lineage) learn(e ahp.EventType, target []byte) {
	if !carries(e) {
		return
	}
	if l.roles == nil {
		l.roles, l.owners = make(map[string]string), make(map[string]string)
	}
	if next := (lineage{copied(l.roles), copied(l.owners)}); next.accept(target) {
		*l = next
	}
}

func copied(m map[string]string) map[string]string {
	c := make(map[string]string, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// keeps reports whether nothing in the target has moved.
func (l *lineage) keeps(target []byte) bool {
	next := lineage{copied(l.roles), copied(l.owners)}
	return next.accept(target)
}

// accept takes in a list of messages and reports whether nothing in it has
// moved. After a refusal l is worth nothing.
func (l *lineage) accept(target []byte) bool {
	for message := range ahp.Elements(target) {
		id, role := string(ahp.Text(ahp.Member(message, "id"))), string(ahp.Text(ahp.Member(message, "role")))
		if known, ok := l.roles[id]; ok && known != role {
			return false
		}
		l.roles[id] = role
		for p := range ahp.Elements(ahp.Member(message, "parts")) {
			child := string(ahp.Text(ahp.Member(p, "id")))
			if owner, ok := l.owners[child]; ok && owner != id {
				return false
			}
			if known, ok := l.roles[child]; ok && known != role {
				return false
			}
			l.owners[child], l.roles[child] = id, role
		}
	}
	return l.acyclic()
}

// acyclic reports whether no part owns itself, however indirectly.
func (l *lineage) acyclic() bool {
	walks := make(map[string]int, len(l.owners)) // which walk came by first
	walk := 0
	for child := range l.owners {
		walk++
		for owned := child; ; {
			if seen := walks[owned]; seen == walk {
				return false
			} else if seen > 0 {
				break
			}
			walks[owned] = walk
			owner, ok := l.owners[owned]
			if !ok {
				break
			}
			owned = owner
		}
	}
	return true
}
