package config

import (
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TenantDocument is one tenant as a file of its own has it: an object of the
// shape of a member of tenants. Its syntax has been read; what it means is for
// the configuration to say that it becomes part of. It never changes.
type TenantDocument struct{ root spot }

// ParseTenant reads a tenant's document in YAML or JSON. name is what mistakes
// call it. Its error is a [Mistakes]: of syntax, and of scalars that mean one
// thing in YAML and another in the JSON that [TenantDocument.JSON] makes of them.
func ParseTenant(name string, data []byte) (*TenantDocument, error) {
	r := newReader(name, nil)
	d := new(TenantDocument)
	if root := r.parse(r.source(name), data); root != nil {
		d.root = spot{node: root}
		if r.is(d.root, kindObject, "write an object: id, keys and registration") {
			d.root.node = r.plainless(d.root)
		}
	}
	if _, err := r.result(); err != nil {
		return nil, err
	}
	return d, nil
}

var expiresPath = regexp.MustCompile(`^keys\[\d+\]\.expires$`)

// plainless returns a copy of the tree at s in which no scalar depends on its
// having been written without quotes, and reports those for which that matters.
func (r *reader) plainless(s spot) *node {
	n := *s.node
	n.plain = false
	switch {
	case s.kind == kindNumber && s.plain && s.text == "0.1" && (s.path == "protocolVersion" || strings.HasSuffix(s.path, ".protocolVersion")):
		n.kind = kindString // see reader.version
	case s.kind == kindNumber && !json.Valid([]byte(s.text)):
		r.mistake(s, cut(s.text, maxShown), "is not a plain number", "write decimal digits, or put a text in quotes")
	case s.kind == kindBool:
		r.boolean(s)
	case s.kind == kindString && expiresPath.MatchString(s.path):
		// Means the same with and without quotes, see reader.expires.
	case s.kind == kindString:
		r.text(s)
	}
	n.fields = slices.Clone(s.fields)
	for i, f := range n.fields {
		n.fields[i].value = r.plainless(s.member(f.key, f.value))
	}
	n.items = slices.Clone(s.items)
	for i := range n.items {
		n.items[i] = r.plainless(s.item(i))
	}
	return &n
}

// Document returns the tenant as it is in effect, every default filled in, as
// [File.Print] shows it: of keys the start of their digests, and in place of
// what could be a credential the word "redacted".
func (t *Tenant) Document() *TenantDocument {
	r := newReader("", nil)
	return &TenantDocument{spot{node: r.parse(r.source(""), t.Print())}}
}

// ID returns the tenant's id, or "" where the document has none.
func (d *TenantDocument) ID() string {
	if id := d.root.find("id"); id != nil && id.kind == kindString {
		return id.text
	}
	return ""
}

// JSON returns the document as indented JSON with a newline at its end. Equal
// documents give equal bytes, and comments are not in them.
func (d *TenantDocument) JSON() []byte {
	return append(d.root.appendJSON(nil, 0), '\n')
}

func (n *node) appendJSON(out []byte, depth int) []byte {
	line := func(depth int) {
		out = append(out, '\n')
		for range depth {
			out = append(out, "  "...)
		}
	}
	switch n.kind {
	case kindString:
		return appendText(out, n.text)
	case kindNumber, kindBool:
		return append(out, n.text...)
	case kindObject:
		out = append(out, '{')
		for i, f := range n.fields {
			if i > 0 {
				out = append(out, ',')
			}
			line(depth + 1)
			out = append(appendText(out, f.key), ": "...)
			out = f.value.appendJSON(out, depth+1)
		}
		if len(n.fields) > 0 {
			line(depth)
		}
		return append(out, '}')
	case kindList:
		out = append(out, '[')
		for i, item := range n.items {
			if i > 0 {
				out = append(out, ',')
			}
			line(depth + 1)
			out = item.appendJSON(out, depth+1)
		}
		if len(n.items) > 0 {
			line(depth)
		}
		return append(out, ']')
	default:
		return append(out, "null"...)
	}
}

func appendText(out []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // a string can always be encoded
	return append(out, quoted...)
}

// find returns the member of an object, or nil.
func (n *node) find(key string) *node {
	for _, f := range n.fields {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// KeyDigests returns the lower-case hexadecimal SHA-256 digests of the keys in
// their order, with "" for a key by reference. It is empty where keys is no list.
func (d *TenantDocument) KeyDigests() []string {
	keys := d.root.find("keys")
	if keys == nil {
		return nil
	}
	digests := make([]string, len(keys.items))
	for i, k := range keys.items {
		sum := k.find("sha256")
		if sum == nil || sum.kind != kindString {
			continue
		}
		if raw, err := hex.DecodeString(sum.text); err == nil {
			digests[i] = hex.EncodeToString(raw)
		}
	}
	return digests
}

// LiveKeys returns the places of the keys that have not expired at now, as far as
// the document says when they do.
func (d *TenantDocument) LiveKeys(now time.Time) []int {
	var live []int
	if keys := d.root.find("keys"); keys != nil {
		for i, k := range keys.items {
			end := k.find("expires")
			if end != nil {
				if t, err := time.Parse(time.RFC3339, end.text); err == nil && !now.Before(t) {
					continue
				}
			}
			live = append(live, i)
		}
	}
	return live
}

// HasCredentials reports whether the document says what the tenant is known by.
func (d *TenantDocument) HasCredentials() bool {
	return d.root.has("keys") || d.root.has("certificates")
}

// WithKeys returns the document with some of its keys, named by their places in
// KeyDigests, and behind them keys with those digests, in hexadecimal. Where it
// has no keys they come after the id.
func (d *TenantDocument) WithKeys(kept []int, digests ...string) *TenantDocument {
	list := &node{src: d.root.src, line: d.root.line, col: d.root.col, kind: kindList}
	if keys := d.root.find("keys"); keys != nil {
		for _, i := range kept {
			list.items = append(list.items, keys.items[i])
		}
	}
	for _, digest := range digests {
		list.items = append(list.items, &node{src: d.root.src, kind: kindObject, fields: []field{
			{key: "sha256", value: &node{src: d.root.src, kind: kindString, text: digest}},
		}})
	}
	n := *d.root.node
	n.fields = slices.Clone(n.fields)
	at := slices.IndexFunc(n.fields, func(f field) bool { return f.key == "keys" })
	if at < 0 {
		at = 1 + slices.IndexFunc(n.fields, func(f field) bool { return f.key == "id" })
		n.fields = slices.Insert(n.fields, at, field{key: "keys"})
	}
	n.fields[at].value = list
	return &TenantDocument{spot{node: &n}}
}

// Locate returns m, which was found in the JSON of the document, with the
// position in what ParseTenant was given and without the name of a file.
func (d *TenantDocument) Locate(m Mistake) Mistake {
	at, line, col := d.root, d.root.line, d.root.col
	for at.path != m.Path {
		next, keyLine, keyCol, ok := at.towards(m.Path)
		if !ok { // it is about what is not there
			line, col = at.line, at.col
			break
		}
		at, line, col = next, keyLine, keyCol
	}
	if m.What != UnknownKey {
		line, col = at.line, at.col
	}
	m.File, m.Line, m.Col = "", line, col
	return m
}

// towards returns the member or item of s that is on the way to path, with the
// position of its key or else its own.
func (s spot) towards(path string) (next spot, line, col int, ok bool) {
	if len(path) <= len(s.path) {
		return spot{}, 0, 0, false
	}
	rest := path[len(s.path):]
	if s.kind == kindList {
		digits, _, _ := strings.Cut(strings.TrimPrefix(rest, "["), "]")
		i, err := strconv.Atoi(digits)
		if err != nil || i < 0 || i >= len(s.items) {
			return spot{}, 0, 0, false
		}
		next = s.item(i)
		return next, next.line, next.col, true
	}
	for _, f := range s.fields {
		// Most are another one, and are told so without making their path.
		if isWord(f.key) && !strings.HasPrefix(strings.TrimPrefix(rest, "."), f.key) {
			continue
		}
		if leadsTo(joinKey(s.path, f.key), path) {
			return s.member(f.key, f.value), f.line, f.col, true
		}
	}
	return spot{}, 0, 0, false
}

// leadsTo reports whether path is at what path prefix names, or below it.
func leadsTo(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// hooks visits every hook of the registration documents that stand in the
// tenant's own.
func (d *TenantDocument) hooks(visit func(hook spot)) {
	registration := d.root.find("registration")
	if registration == nil {
		return
	}
	at := d.root.member("registration", registration)
	documents := []spot{at}
	if at.kind == kindList {
		documents = documents[:0]
		for i := range at.items {
			documents = append(documents, at.item(i))
		}
	}
	for _, doc := range documents {
		hooks := doc.find("hooks")
		if hooks == nil {
			continue
		}
		list := doc.member("hooks", hooks)
		for i := range list.items {
			visit(list.item(i))
		}
	}
}

// literals visits every literal header value, URL and resource of the document, with what
// is shown of it.
func (d *TenantDocument) literals(visit func(s spot, show string)) {
	d.hooks(func(hook spot) {
		if n := hook.find("authentication"); n != nil {
			if uri := n.find("resource"); uri != nil && uri.kind == kindString {
				visit(hook.member("authentication", n).member("resource", uri), hideQuery(uri.text))
			}
		}
		n := hook.find("transport")
		if n == nil {
			return
		}
		transport := hook.member("transport", n)
		if url := n.find("url"); url != nil && url.kind == kindString {
			visit(transport.member("url", url), hideQuery(url.text))
		}
		headers := n.find("headers")
		if headers == nil {
			return
		}
		for _, f := range headers.fields {
			if f.value.kind != kindString {
				continue
			}
			show := f.value.text
			if looksSecret(strings.ToLower(f.key), show) {
				show = redacted
			}
			visit(transport.member("headers", headers).member(f.key, f.value), show)
		}
	})
}

// Redacted returns the document with the word "redacted" in place of every
// literal header and query value that could be a credential.
func (d *TenantDocument) Redacted() *TenantDocument {
	texts := make(map[*node]string)
	d.literals(func(s spot, show string) { texts[s.node] = show })
	return &TenantDocument{spot{node: d.root.replaced(texts)}}
}

// LiteralCredentials returns as mistakes what [TenantDocument.Redacted] hides,
// and also the word that it hides it behind: a document that was shown and is
// written back must not set it.
func (d *TenantDocument) LiteralCredentials() Mistakes {
	r := newReader("", nil)
	d.literals(func(s spot, show string) {
		if show != s.text || show == redacted || strings.Contains(show, "="+redacted) {
			r.mistake(s, "", "could be a credential, or stands in place of one, and a document may only refer to it", "write a header with {valueEnv: NAME} or {valueRef: PATH}, where secrets are granted")
		}
	})
	_, err := r.result()
	return AsMistakes(err)
}

// replaced returns a copy of the tree with other texts for some strings.
func (n *node) replaced(texts map[*node]string) *node {
	c := *n
	if text, ok := texts[n]; ok && n.kind == kindString {
		c.text = text
	}
	c.fields = slices.Clone(n.fields)
	for i, f := range c.fields {
		c.fields[i].value = f.value.replaced(texts)
	}
	c.items = slices.Clone(n.items)
	for i, item := range c.items {
		c.items[i] = item.replaced(texts)
	}
	return &c
}

// OperatorOnly returns as mistakes what the document has of the operator's. The
// members that name a file or an environment variable of the gateway's machine
// would let whoever writes them find out what is there, and have it sent
// elsewhere; those that open private networks, what answers there.
func (d *TenantDocument) OperatorOnly() Mistakes {
	r := newReader("", nil)
	const theirs = "names what is on the gateway's machine, which is for those who may write there"
	refuse := func(s spot, instead string) { r.mistake(s, "", theirs, instead) }
	if keys := d.root.find("keys"); keys != nil {
		at := d.root.member("keys", keys)
		for i := range at.items {
			for _, name := range []string{"env", "file"} {
				if n := at.item(i).find(name); n != nil {
					refuse(at.item(i).member(name, n), "write {sha256: …} with 64 hexadecimal digits")
				}
			}
		}
	}
	if n := d.root.find("registration"); n != nil {
		at := d.root.member("registration", n)
		for _, s := range append([]spot{at}, listed(at)...) {
			if s.kind == kindString {
				refuse(s, "write the registration document itself")
			}
			if hooks := s.find("hooks"); hooks != nil {
				for _, hook := range listed(s.member("hooks", hooks)) {
					for _, path := range [][2]string{{"transport", "url"}, {"authentication", "issuer"}} {
						if at, ok := hook.below(path); ok && isLoopbackURL(at.text) {
							refuse(at, "write where it is reached from elsewhere")
						}
					}
				}
			}
		}
	}
	if n := d.root.find("secrets"); n != nil {
		at := d.root.member("secrets", n)
		if at.kind != kindObject {
			refuse(at, "remove it")
		}
		for _, f := range at.fields {
			if f.key != "stored" { // the tenant's own are no secrets of the machine's
				refuse(at.member(f.key, f.value), "remove it, or write stored: true where secrets are stored")
			}
		}
	}
	if n := d.root.find("backends"); n != nil {
		at := d.root.member("backends", n)
		for _, f := range at.fields {
			settings := at.member(f.key, f.value)
			// What is not known to concern the tenant alone is the operator's.
			for _, own := range f.value.fields {
				member := settings.member(own.key, own.value)
				switch own.key {
				case "inFlight", "connections", "retry", "breaker", "shadow":
				case "caFile", "issuerCAFile", "clientCertFile", "clientKeyFile":
					refuse(member, "remove it, or have it written by the operator")
				default:
					if own.value.text != "false" {
						r.mistake(member, "", "opens what is the operator's to open", "remove it, or have it written under backend in the gateway file")
					}
				}
			}
		}
	}
	_, err := r.result()
	return AsMistakes(err)
}

// below returns what is at a path of two members.
func (s spot) below(path [2]string) (spot, bool) {
	outer := s.find(path[0])
	if outer == nil {
		return spot{}, false
	}
	inner := outer.find(path[1])
	if inner == nil {
		return spot{}, false
	}
	return s.member(path[0], outer).member(path[1], inner), true
}

// isLoopbackURL reports whether a URL names the machine that it is used on.
func isLoopbackURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (isLoopbackHost(u.Hostname()) || isMappedLoopback(u.Hostname()))
}

func listed(s spot) []spot {
	items := make([]spot, len(s.items))
	for i := range s.items {
		items[i] = s.item(i)
	}
	return items
}
