package gateway

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// zone is a real name server on loopback: what it answers to a name, one lookup
// after the other; the last answer stays. A text that is no address is another
// name (CNAME).
type zone struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   map[dnsmessage.Question]int
}

// startZone returns a resolver that asks nobody but the zone.
func startZone(t testing.TB, answers map[string][][]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{answers: answers, asked: make(map[dnsmessage.Question]int)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply := z.reply(buffer[:n]); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (z *zone) reply(message []byte) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	answers, known := z.answer(q)
	h := dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true}
	if !known {
		h.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, h)
	_ = b.StartQuestions()
	_ = b.Question(q)
	_ = b.StartAnswers()
	for _, a := range answers {
		r := dnsmessage.ResourceHeader{Name: a.name, Class: dnsmessage.ClassINET}
		switch {
		case a.alias.Length > 0:
			_ = b.CNAMEResource(r, dnsmessage.CNAMEResource{CNAME: a.alias})
		case a.addr.Is4():
			_ = b.AResource(r, dnsmessage.AResource{A: a.addr.As4()})
		default:
			_ = b.AAAAResource(r, dnsmessage.AAAAResource{AAAA: a.addr.As16()})
		}
	}
	reply, err := b.Finish()
	if err != nil {
		return nil
	}
	return reply
}

type record struct {
	name, alias dnsmessage.Name
	addr        netip.Addr
}

// answer returns what there is of the type asked for, and whether there is the name.
func (z *zone) answer(q dnsmessage.Question) (records []record, known bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	lookups, known := z.answers[strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))]
	if !known {
		return nil, false
	}
	n := min(z.asked[q], len(lookups)-1)
	z.asked[q]++
	for _, text := range lookups[n] {
		addr, err := netip.ParseAddr(text)
		switch {
		case err != nil:
			alias := dnsmessage.MustNewName(text + ".")
			records = append(records, record{name: q.Name, alias: alias})
			for _, target := range z.answers[text][0] {
				if a := netip.MustParseAddr(target); q.Type == dnsmessage.TypeA == a.Is4() {
					records = append(records, record{name: alias, addr: a})
				}
			}
		case q.Type == dnsmessage.TypeA && addr.Is4(), q.Type == dnsmessage.TypeAAAA && addr.Is6():
			records = append(records, record{name: q.Name, addr: addr})
		}
	}
	return records, true
}
