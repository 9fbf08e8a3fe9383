package gateway

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// forbidden are ways to write a place that a tenant's document must not lead to,
// $P being the port of the trap. They are stopped when the configuration is
// checked; whatever gets by is stopped when it is dialled.
var forbidden = []string{
	// Numbers that some readers take for 127.0.0.1 or 169.254.169.254.
	"//2130706433:$P/", "//0x7f000001:$P/", "//0X7F000001:$P/", "//017700000001:$P/", "//0177.0.0.1:$P/", "//0x7f.0.0.1:$P/", "//127.1:$P/", "//127.0.1:$P/",
	"//127.000.000.001:$P/", "//0:$P/", "//0x0:$P/", "//127.0.0.1.:$P/", "//2852039166/", "//0xa9fea9fe/", "//0251.0376.0251.0376/", "//169.254.43518/",
	"//4294967295/", "//127.0.0.1.0x7f:$P/", "//1.0x7f:$P/",
	// Addresses of the machine, of its network, and of nobody.
	"//0.0.0.0:$P/", "//[::]:$P/", "//255.255.255.255/", "//10.0.0.1/", "//172.16.0.1/", "//172.31.255.255/", "//192.168.0.1/", "//100.64.0.1/", "//[fd00::1]/", "//[fc00::1]/",
	"//169.254.1.1/", "//[fe80::1]/", "//[fe80::1%25lo]:$P/", "//[fec0::1]/", "//224.0.0.1/", "//[ff02::1]/", "//198.18.0.1/", "//192.0.2.1/", "//240.0.0.1/", "//[2001:db8::1]/",
	// Services that tell whoever asks from inside.
	"//169.254.169.254/latest/meta-data/", "//169.254.170.2/v2/credentials", "//[fd00:ec2::254]/", "//[fd00:ec2::23]/", "//[fd20:ce::254]/computeMetadata/v1/",
	"//100.100.100.200/latest/", "//168.63.129.16/machine", "//192.0.0.192/opc/v2/", "//[fd00:c1::a9fe:a9fe]/opc/v2/",
	// IPv4 inside IPv6.
	"//[::ffff:169.254.169.254]/", "//[::ffff:a9fe:a9fe]/", "//[::ffff:10.0.0.1]/", "//[::ffff:0.0.0.0]:$P/", "//[::127.0.0.1]:$P/", "//[::169.254.169.254]/", "//[::ffff:0:127.0.0.1]:$P/",
	"//[64:ff9b::7f00:1]:$P/", "//[64:ff9b::a9fe:a9fe]/", "//[64:ff9b:1::a9fe:a9fe]/", "//[2002:7f00:1::]:$P/", "//[2002:a9fe:a9fe::1]/", "//[2001:0:808:808::5601:5601]/",
	// Two readers, two hosts.
	"//public.example@127.0.0.1:$P/", "//127.0.0.1:$P@public.example/", "//user:password@127.0.0.1:$P/", "//public.example#@127.0.0.1:$P/", `//public.example\@127.0.0.1:$P/`,
	`//127.0.0.1:$P\@public.example/`, `/\127.0.0.1:$P/`, "///127.0.0.1:$P/", "127.0.0.1:$P/", "//public.example:80@127.0.0.1:$P/", "//[::1]:$P]@public.example/", "//[127.0.0.1]:$P/",
	"//[::1:$P/", "//[::1]x:$P/", "//::1:$P/", "//127.0.0.1:$P:80/", "//127.0.0.1:0/", "//127.0.0.1:99999/", "//127.0.0.1:/", "//:$P/",
	// Escapes and characters that some readers take for others.
	"//%31%32%37.0.0.1:$P/", "//127%2e0%2e0%2e1:$P/", "//localhost%00.public.example:$P/", "//localhost%2f.public.example:$P/", "//127.0.0.1%0d%0a:$P/", "// 127.0.0.1:$P/", "//127.0.0.1\t:$P/",
	"//127.0.0.1\r\nHost: x:$P/", "//127。0。0。1:$P/", "//127．0．0．1:$P/", "//①②⑦.⓪.⓪.①:$P/", "//ⓛocalhost:$P/", "//localhost\u3002:$P/", "//loc\u00adalhost:$P/",
	"//a..localhost:$P/", "//.localhost:$P/",
}

// names are hosts that look like others, and what a name server says of them,
// $G being where the backend is that may be dialled. They pass the check of the
// configuration and are stopped when they are dialled.
var names = map[string][]string{
	"localhost.": {"127.0.0.1"}, "LocalHost.": {"127.0.0.1"}, "a.localhost": {"127.0.0.1"}, "A.LOCALHOST": {"::1"}, "localhost.localdomain": {"127.0.0.1"},
	"loopback.example": {"127.0.0.1"}, "loopback6.example": {"::1"}, "mapped.example": {"::ffff:127.0.0.1"}, "compatible.example": {"::127.0.0.1"},
	"127.0.0.1.nip.example": {"127.0.0.1"}, "x7f000001.example": {"127.0.0.1"}, "private10.example": {"10.0.0.1"}, "private172.example": {"172.16.0.1"}, "private192.example": {"192.168.1.1"},
	"shared.example": {"100.64.0.1"}, "local6.example": {"fd00::1"}, "linklocal.example": {"169.254.1.1"}, "linklocal6.example": {"fe80::1"}, "unspecified.example": {"0.0.0.0"},
	"unspecified6.example": {"::"}, "broadcast.example": {"255.255.255.255"}, "multicast.example": {"224.0.0.1"}, "multicast6.example": {"ff02::1"}, "reserved.example": {"240.0.0.1"},
	"metadata.google.internal": {"169.254.169.254"}, "metadata": {"169.254.169.254"}, "instance-data.ec2.internal": {"169.254.169.254"}, "aws6.example": {"fd00:ec2::254"},
	"gcp6.example": {"fd20:ce::254"}, "alibaba.example": {"100.100.100.200"}, "azure.example": {"168.63.129.16"}, "oracle.example": {"192.0.0.192"},
	"nat64.example": {"64:ff9b::7f00:1"}, "nat64-metadata.example": {"64:ff9b::a9fe:a9fe"}, "sixtofour.example": {"2002:7f00:1::"}, "teredo.example": {"2001:0:808:808::80ff:fffe"},
	"alias.example": {"loopback.example"}, "two.example": {"10.0.0.1", "127.0.0.1"}, "both.example": {"127.0.0.1", "::1"}, "xn--lcalhost-54a.example": {"127.0.0.1"},
}

// trap is a port on which 127.0.0.1 must not be dialled, and 127.0.0.2 may.
type trap struct {
	port   string
	sprung atomic.Int64 // connections to 127.0.0.1
	good   http.HandlerFunc
	passed atomic.Int64 // requests to 127.0.0.2
}

func setTrap(t *testing.T) *trap {
	t.Helper()
	for range 100 {
		bad, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(bad.Addr().String())
		good, err := net.Listen("tcp", "127.0.0.2:"+port)
		if err != nil {
			bad.Close()
			continue
		}
		tr := &trap{port: port}
		tr.good = tr.pass
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tr.good(w, r) })}
		go func() { _ = s.Serve(good) }()
		go func() {
			for {
				c, err := bad.Accept()
				if err != nil {
					return
				}
				tr.sprung.Add(1)
				c.Close()
			}
		}()
		t.Cleanup(func() { s.Close(); bad.Close() })
		return tr
	}
	t.Fatal("no port is free on both 127.0.0.1 and 127.0.0.2")
	return nil
}

// pass answers a 0.1 or draft intercept with a pass.
func (tr *trap) pass(w http.ResponseWriter, r *http.Request) {
	tr.passed.Add(1)
	var m struct {
		ID     json.RawMessage
		Params struct{ ProtocolVersion string }
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close") // so that every call is a dial
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"effects":[]}}`, m.ID, m.Params.ProtocolVersion)
}

// zone answers what names says, and that public.example is the good backend.
func (tr *trap) zone(t *testing.T) func(*Options) {
	answers := map[string][][]string{"public.example": {{"127.0.0.2"}}, "id.example.com": {{"127.0.0.2"}}}
	for name, addrs := range names {
		answers[strings.ToLower(strings.TrimSuffix(name, "."))] = [][]string{addrs}
	}
	resolver := startZone(t, answers)
	return func(o *Options) { o.Resolver = resolver }
}

// acme is a gateway file of a tenant of a list, whose backends are at urls; more
// are members of their hooks, one for each or none.
func acme(urls []string, more []string, settings ...string) string {
	var hooks, ids []string
	for i, u := range urls {
		id := fmt.Sprintf("com.example.h%d", i)
		extra := ""
		if more != nil {
			extra = more[i]
		}
		hooks = append(hooks, `{"id":"`+id+`","transport":{"type":"http","url":`+strconv.Quote(u)+`},`+extra+`"subscriptions":[{`+intercepts("draft", "fail-open", 20000)+`}]}`)
		ids = append(ids, id+": {allowHTTP: true, allowAddresses: [127.0.0.2/32], "+strings.Join(settings, ", ")+"}")
	}
	return many(tenantEntry("acme", registration("draft", hooks...), []string{"key"}, "backends: {"+strings.Join(ids, ", ")+"}", "secrets: {dir: SECRETS}"))
}

// decide posts one event and returns the steps of its audit record.
func decide(r *rig, n int) (steps []map[string]any) {
	r.t.Helper()
	r.post("/hooks", eventDraft(fmt.Sprintf("event-%d", n)), "Authorization: Bearer key")
	all, _ := r.audit.await(n)[n-1]["steps"].([]any)
	for _, s := range all {
		steps = append(steps, s.(map[string]any))
	}
	return steps
}

func oauthMember(issuer string) string {
	return `"authentication":{"type":"oauth","flow":"client_credentials","issuer":` + strconv.Quote(issuer) + `,"resource":"urn:r","clientId":"c","clientSecretRef":"client"},`
}

// A document leads to nothing but public addresses and those that the operator
// allows, however it is written and whatever names resolve to: as the URL of a
// backend and as that of an issuer. The places of the first list are mistakes.
func TestForbiddenPlacesAreMistakes(t *testing.T) {
	tr := setTrap(t)
	for _, place := range forbidden {
		for _, scheme := range []string{"http:", "https:"} {
			u := scheme + strings.ReplaceAll(place, "$P", tr.port)
			for what, text := range map[string]string{
				"transport.url":         acme([]string{u}, nil),
				"authentication.issuer": acme([]string{"https://public.example/"}, []string{oauthMember(u)}),
			} {
				_, _, err := config.Parse("test.yaml", []byte(text), environ)
				found := false
				for _, m := range config.AsMistakes(err) {
					found = found || strings.HasSuffix(m.Path, what)
				}
				if !found {
					t.Errorf("%s %q: Parse = %v; want a mistake about it", what, u, err)
				}
			}
		}
	}
	if len(forbidden)+len(names) < 40 {
		t.Errorf("%d forms; want at least 40", len(forbidden)+len(names))
	}
}

// The places of the second list pass, and are not dialled.
func TestForbiddenNamesAreNotDialled(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.2:9") // nobody is there
	}
	tr := setTrap(t)
	var hosts, urls, issuers []string
	for name := range names {
		hosts = append(hosts, name)
		urls = append(urls, "http://"+name+":"+tr.port+"/")
		issuers = append(issuers, oauthMember("https://"+name+":"+tr.port+"/"))
	}
	zone := tr.zone(t)
	r := start(t, acme(urls, nil), zone)
	for i, s := range decide(r, 1) {
		if s["failure"] != "blocked_address" {
			t.Errorf("http://%s: %v (%v); want blocked_address", hosts[i], s["failure"], s["detail"])
		}
	}
	for i := range urls {
		urls[i] = "http://public.example:" + tr.port + "/"
	}
	dir := t.TempDir()
	save(t, dir, "client", "client-secret")
	r = start(t, strings.Replace(acme(urls, issuers), "SECRETS", dir, 1), zone)
	steps := decide(r, 1)
	for i, s := range steps {
		if detail := str(s["detail"]); s["failure"] != "credential" || !strings.HasSuffix(detail, " address not allowed") {
			t.Errorf("issuer https://%s: %v (%s); want credential, address not allowed", hosts[i], s["failure"], detail)
		}
	}
	if len(steps) != len(names) {
		t.Errorf("%d steps; want %d", len(steps), len(names))
	}
	if n, passed := tr.sprung.Load(), tr.passed.Load(); n != 0 || passed != 0 {
		t.Errorf("%d connections and %d calls without a token were made; want none", n, passed)
	}
}

// The metadata of an issuer that may be reached does not lead further than the
// configuration does.
func TestForbiddenTokenEndpoints(t *testing.T) {
	tr := setTrap(t)
	places := append([]string{"//127.0.0.1:$P/", "//localhost:$P/", "//LOCALHOST:$P/", "//[::1]:$P/", "//[::ffff:127.0.0.1]:$P/"}, forbidden...)
	for name := range names {
		places = append(places, "//"+name+":$P/")
	}
	var base string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err != nil || n >= 2*len(places) {
			http.NotFound(w, r)
			return
		}
		endpoint := []string{"http:", "https:"}[n%2] + strings.ReplaceAll(places[n/2], "$P", tr.port)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": base + "/" + r.PathValue("n"), "token_endpoint": endpoint})
	})
	issuer := httptest.NewUnstartedServer(mux)
	issuer.Listener.Close()
	var err error
	if issuer.Listener, err = net.Listen("tcp", "127.0.0.2:0"); err != nil {
		t.Fatal(err)
	}
	issuer.StartTLS()
	defer issuer.Close()
	_, port, _ := net.SplitHostPort(issuer.Listener.Addr().String())
	base = "https://id.example.com:" + port
	dir := t.TempDir()
	save(t, dir, "roots.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw})))
	save(t, dir, "client", "client-secret")

	var urls, issuers []string
	for n := range 2 * len(places) {
		urls = append(urls, "http://public.example:"+tr.port+"/")
		issuers = append(issuers, oauthMember(base+"/"+strconv.Itoa(n)))
	}
	zone := tr.zone(t)
	var steps []map[string]any
	const most = 100 // steps of a record are bounded
	for from := 0; from < len(urls); from += most {
		to := min(from+most, len(urls))
		text := acme(urls[from:to], issuers[from:to], "issuerCAFile: "+filepath.Join(dir, "roots.pem"))
		r := start(t, strings.Replace(text, "SECRETS", dir, 1), zone)
		steps = append(steps, decide(r, 1)...)
		r.stop()
	}
	if len(steps) != len(urls) {
		t.Fatalf("%d steps; want %d", len(steps), len(urls))
	}
	for n, s := range steps {
		detail := str(s["detail"])
		stopped := strings.HasSuffix(detail, "its metadata has no usable token endpoint") || strings.HasSuffix(detail, "its token endpoint is plain http") ||
			strings.HasSuffix(detail, " address not allowed")
		// A port that nobody has, or a name that is none, is not what is looked for.
		if s["failure"] != "credential" || !stopped && !strings.HasSuffix(detail, "no such host") {
			t.Errorf("token endpoint %q: %v (%s); want credential, stopped", places[n/2], s["failure"], detail)
		}
	}
	if n, passed := tr.sprung.Load(), tr.passed.Load(); n != 0 || passed != 0 {
		t.Errorf("%d connections and %d calls without a token were made; want none", n, passed)
	}
}

// Of the addresses of a name only those are dialled that may be, and the name is
// looked at anew with each dial.
func TestNamesThatChange(t *testing.T) {
	tr := setTrap(t)
	resolver := startZone(t, map[string][][]string{
		"mixed.example":  {{"127.0.0.1", "10.0.0.1", "127.0.0.2"}},
		"rebind.example": {{"127.0.0.2"}, {"127.0.0.1"}, {"169.254.169.254", "::1"}, {"127.0.0.2"}},
	})
	r := start(t, acme([]string{"http://mixed.example:" + tr.port + "/", "http://rebind.example:" + tr.port + "/"}, nil), func(o *Options) { o.Resolver = resolver })
	for n, want := range []string{"", "blocked_address", "blocked_address", ""} {
		steps := decide(r, n+1)
		if got := str(steps[1]["failure"]); got != want {
			t.Errorf("rebind.example, call %d: failure %q; want %q", n+1, got, want)
		}
		if got := str(steps[0]["failure"]); got != "" {
			t.Errorf("mixed.example, call %d: failure %q; want its allowed address", n+1, got)
		}
	}
	if n := tr.sprung.Load(); n != 0 || tr.passed.Load() != 6 {
		t.Errorf("%d connections where none is allowed, %d calls; want none, 6", n, tr.passed.Load())
	}
}

// A redirect is an answer, wherever it leads.
func TestRedirectsAreNotFollowed(t *testing.T) {
	tr := setTrap(t)
	for n, location := range []string{"http://127.0.0.1:$P/", "//127.0.0.1:$P/", "http://public.example:$P/again", "/again", "http://169.254.169.254/latest/meta-data/"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			called := new(atomic.Int64)
			tr.good = func(w http.ResponseWriter, r *http.Request) {
				called.Add(1)
				w.Header().Set("Location", strings.ReplaceAll(location, "$P", tr.port))
				w.WriteHeader(status)
			}
			r := start(t, acme([]string{"http://public.example:" + tr.port + "/"}, nil), tr.zone(t))
			if s := decide(r, 1)[0]; s["failure"] != "redirect" || called.Load() != 1 || tr.sprung.Load() != 0 {
				t.Errorf("%d to %s (%d): %v after %d calls, %d where none is allowed; want redirect after 1, 0", status, location, n, s["failure"], called.Load(), tr.sprung.Load())
			}
			r.stop()
		}
	}
}

// save writes a file into dir.
func save(t testing.TB, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
