package fakebackend

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// behaviour is what the server does with one request: an answer, or, where raw
// is set, whatever raw does with the connection.
type behaviour struct {
	status    int    // 0 means 200
	mediaType string // "" means application/json, "-" none at all
	header    [2]string
	text      string // of the body
	body      template
	raw       func(*exchange)
	always    bool // answers a notification with a body too
}

// answer writes the behaviour's answer. A notification that nothing is wrong
// with is accepted with 204.
func (b *behaviour) answer(ctx *fasthttp.RequestCtx, m Message) {
	if len(m.ID) == 0 && b.status == 0 && !b.always {
		ctx.SetStatusCode(http.StatusNoContent)
		return
	}
	ctx.Response.Header.SetNoDefaultContentType(true)
	switch b.mediaType {
	case "":
		ctx.SetContentType("application/json")
	case "-":
	default:
		ctx.SetContentType(b.mediaType)
	}
	if b.status != 0 {
		ctx.SetStatusCode(b.status)
	}
	if b.header[0] != "" {
		ctx.Response.Header.Set(b.header[0], b.header[1])
	}
	ctx.Response.SetBodyRaw(b.body.append(nil, m))
}

// result is a JSON-RPC response with the given result members.
func result(members string) string {
	return `{"jsonrpc":"2.0","id":$id,"result":{` + members + `}}`
}

// effects is a good result with the given effects array.
func effects(array string) string {
	return result(`"protocolVersion":$version,"effects":` + array)
}

// rpcError is a JSON-RPC error response.
func rpcError(code string) string {
	return `{"jsonrpc":"2.0","id":$id,"error":{"code":` + code + `,"message":"the fake backend's error"}}`
}

// configuration is a good answer to hooks/configuration with the given object.
func configuration(object string) string {
	return result(`"protocolVersion":$version,"configuration":` + object)
}

// advertisement is what the fake backend advertises unless it is told otherwise.
const advertisement = `{"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"metadata"}}]}`

const deny = `{"type":"deny","reason":"denied by the fake backend"}`

// answers are the behaviours that the HTTP server itself can write.
var answers = map[string]behaviour{
	// Good answers.
	"pass":            {text: effects(`[]`)},
	"deny":            {text: effects(`[` + deny + `]`)},
	"deny-code":       {text: effects(`[{"type":"deny","reason":"denied by the fake backend","code":"com.example.denied"}]`)},
	"deny-extensions": {text: effects(`[{"type":"deny","reason":"denied by the fake backend","extensions":{"com.example.note":{"a":1}}}]`)},
	"allow":           {text: effects(`[{"type":"allow"}]`)},
	"ask":             {text: effects(`[{"type":"ask"}]`)},
	"pass-charset":    {text: effects(`[]`), mediaType: "Application/JSON; charset=UTF-8"},
	"pass-spaced":     {text: "\n { \"id\" : $id ,\t\"jsonrpc\" : \"2.0\" , \"result\" : { \"effects\" : [ ] , \"protocolVersion\" : $version } } \r\n"},
	"pass-unknown":    {text: `{"jsonrpc":"2.0","id":$id,"extra":1,"result":{"protocolVersion":$version,"effects":[],"note":"unknown members are ignored"}}`},
	"pass-close":      {text: effects(`[]`), header: [2]string{"Connection", "close"}},

	// Statuses and media types.
	"status-201":         {text: effects(`[]`), status: http.StatusCreated},
	"status-202":         {status: http.StatusAccepted, mediaType: "-"},
	"status-202-body":    {text: effects(`[]`), status: http.StatusAccepted},
	"status-204":         {status: http.StatusNoContent, mediaType: "-"},
	"status-400":         {text: `{}`, status: http.StatusBadRequest},
	"status-401":         {text: `{}`, status: http.StatusUnauthorized, header: [2]string{"WWW-Authenticate", "Bearer"}},
	"status-403":         {text: `{}`, status: http.StatusForbidden},
	"status-429":         {text: `{}`, status: http.StatusTooManyRequests, header: [2]string{"Retry-After", "1"}},
	"status-500":         {text: `{}`, status: http.StatusInternalServerError},
	"status-500-pass":    {text: effects(`[]`), status: http.StatusInternalServerError},
	"status-503":         {text: `{}`, status: http.StatusServiceUnavailable},
	"redirect":           {text: effects(`[]`), status: http.StatusTemporaryRedirect, header: [2]string{"Location", "/elsewhere"}},
	"media-type-text":    {text: effects(`[]`), mediaType: "text/plain"},
	"media-type-missing": {text: effects(`[]`), mediaType: "-"},
	"media-type-problem": {text: effects(`[]`), mediaType: "application/problem+json"},
	"media-type-list":    {text: effects(`[]`), mediaType: "application/json, text/plain"},
	"gzip":               {text: effects(`[]`), header: [2]string{"Content-Encoding", "gzip"}},
	"oversize":           {text: effects(`[]`) + strings.Repeat(" ", 2<<20)},
	"observe-200":        {text: effects(`[]`), always: true},

	// Bodies that are not strict JSON.
	"empty":          {text: ""},
	"bad-utf8":       {text: result("\"protocolVersion\":$version,\"effects\":[],\"note\":\"\xff\"")},
	"lone-surrogate": {text: result(`"protocolVersion":$version,"effects":[],"note":"\ud800"`)},
	"bom":            {text: "\xef\xbb\xbf" + effects(`[]`)},
	"bad-json":       {text: `{"jsonrpc":"2.0","id":$id,"result":`},
	"dup-member":     {text: result(`"protocolVersion":$version,"effects":[` + deny + `],"effects":[]`)},
	"trailing-bytes": {text: effects(`[]`) + `{}`},
	"deep":           {text: result(`"protocolVersion":$version,"effects":[],"note":` + strings.Repeat("[", 200) + strings.Repeat("]", 200))},

	// Bodies that are no correlated JSON-RPC response.
	"array":             {text: `[` + effects(`[]`) + `]`},
	"string":            {text: `"pass"`},
	"no-jsonrpc":        {text: `{"id":$id,"result":{"protocolVersion":$version,"effects":[]}}`},
	"jsonrpc-1.0":       {text: `{"jsonrpc":"1.0","id":$id,"result":{"protocolVersion":$version,"effects":[]}}`},
	"no-id":             {text: `{"jsonrpc":"2.0","result":{"protocolVersion":$version,"effects":[]}}`},
	"id-mismatch":       {text: `{"jsonrpc":"2.0","id":"another-request","result":{"protocolVersion":$version,"effects":[]}}`},
	"id-number":         {text: `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":$version,"effects":[]}}`},
	"id-null":           {text: `{"jsonrpc":"2.0","id":null,"result":{"protocolVersion":$version,"effects":[]}}`},
	"result-and-error":  {text: `{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":$version,"effects":[]},"error":{"code":-32603,"message":"both"}}`},
	"neither":           {text: `{"jsonrpc":"2.0","id":$id}`},
	"rpc-error":         {text: rpcError("-32603")},
	"rpc-error-32001":   {text: rpcError("-32001")},
	"rpc-error-32002":   {text: rpcError("-32002")},
	"rpc-error-32003":   {text: rpcError("-32003")},
	"rpc-error-32004":   {text: rpcError("-32004")},
	"rpc-error-32601":   {text: rpcError("-32601")},
	"rpc-error-null-id": {text: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the fake backend's error"}}`},
	"error-no-code":     {text: `{"jsonrpc":"2.0","id":$id,"error":{"message":"the fake backend's error"}}`},

	// Answers to hooks/configuration.
	"configuration":              {text: configuration(advertisement)},
	"configuration-empty":        {text: configuration(`{"subscriptions":[]}`)},
	"configuration-effects":      {text: result(`"protocolVersion":$version,"effects":[],"configuration":` + advertisement)},
	"configuration-null":         {text: configuration(`null`)},
	"configuration-version":      {text: result(`"protocolVersion":"0.1","configuration":` + advertisement)},
	"configuration-other-id":     {text: `{"jsonrpc":"2.0","id":"another-request","result":{"protocolVersion":$version,"configuration":` + advertisement + `}}`},
	"configuration-status-201":   {text: configuration(advertisement), status: http.StatusCreated},
	"configuration-with-upload":  {text: configuration(`{"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-closed","content":{"default":"body"},"upload":{"endpoint":"https://uploads.example.com/","timeoutMs":1000,"maxBytes":1024}}]}`)},
	"configuration-bad-timeout":  {text: configuration(`{"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":0,"failurePolicy":"fail-closed","content":{"default":"metadata"}}]}`)},
	"configuration-inapplicable": {text: configuration(`{"subscriptions":[{"events":["acme.*"],"mode":"observe","content":{"default":"metadata"}}]}`)},

	// Results that lack something.
	"version-mismatch": {text: result(`"protocolVersion":"9.9","effects":[]`)},
	"no-version":       {text: result(`"effects":[]`)},
	"result-null":      {text: `{"jsonrpc":"2.0","id":$id,"result":null}`},
	"no-effects":       {text: result(`"protocolVersion":$version`)},
	"effects-null":     {text: effects(`null`)},
	"effects-object":   {text: effects(`{}`)},

	// Effects that cannot be accepted.
	"unknown-effect":      {text: effects(`[{"type":"explode"}]`)},
	"unknown-field":       {text: effects(`[{"type":"deny","reason":"no","colour":"red"}]`)},
	"unadvertised":        {text: effects(`[{"type":"message","text":"not asked for"}]`)},
	"effect-no-type":      {text: effects(`[{"reason":"no"}]`)},
	"effect-string":       {text: effects(`["deny"]`)},
	"deny-no-reason":      {text: effects(`[{"type":"deny"}]`)},
	"deny-empty-reason":   {text: effects(`[{"type":"deny","reason":""}]`)},
	"deny-number-reason":  {text: effects(`[{"type":"deny","reason":7}]`)},
	"deny-bad-code":       {text: effects(`[{"type":"deny","reason":"no","code":"not a reverse name"}]`)},
	"deny-bad-extensions": {text: effects(`[{"type":"deny","reason":"no","extensions":{"plain":1}}]`)},
	"two-denies":          {text: effects(`[` + deny + `,` + deny + `]`)},
	"deny-and-unknown":    {text: effects(`[` + deny + `,{"type":"explode"}]`)},
}

// Names returns every behaviour without an argument, sorted. Besides them there
// are "deny:REASON", "effects:JSON", "result:JSON", "configuration:JSON", "error:JSON", "body:TEXT"
// and "status:CODE"; in JSON and TEXT the words $id and $version stand for the
// request's own.
func Names() []string {
	names := slices.Collect(maps.Keys(answers))
	names = slices.AppendSeq(names, maps.Keys(wire))
	names = slices.AppendSeq(names, maps.Keys(connectionBehaviours))
	slices.Sort(names)
	return names
}

// behaviour returns the behaviour that name stands for.
func (s *Server) behaviour(name string) (*behaviour, error) {
	if b, ok := s.compiled.Load(name); ok {
		return b.(*behaviour), nil
	}
	b, err := newBehaviour(name)
	if err != nil {
		return nil, err
	}
	b.body = newTemplate(b.text)
	s.compiled.Store(name, &b)
	return &b, nil
}

func newBehaviour(name string) (behaviour, error) {
	if b, ok := answers[name]; ok {
		return b, nil
	}
	if raw, ok := wire[name]; ok {
		return behaviour{raw: raw}, nil
	}
	if _, ok := connectionBehaviours[name]; ok {
		return behaviour{}, fmt.Errorf("behaviour %q concerns whole connections and must be a server's only one", name)
	}
	kind, arg, ok := strings.Cut(name, ":")
	if !ok {
		return behaviour{}, fmt.Errorf("no behaviour is called %q", name)
	}
	switch kind {
	case "deny":
		return behaviour{text: effects(`[{"type":"deny","reason":` + strconv.Quote(arg) + `}]`)}, nil
	case "effects":
		return behaviour{text: effects(arg)}, nil
	case "result":
		return behaviour{text: `{"jsonrpc":"2.0","id":$id,"result":` + arg + `}`}, nil
	case "configuration":
		return behaviour{text: configuration(arg)}, nil
	case "error":
		return behaviour{text: `{"jsonrpc":"2.0","id":$id,"error":` + arg + `}`}, nil
	case "body":
		return behaviour{text: arg, always: true}, nil
	case "status":
		code, err := strconv.Atoi(arg)
		if err != nil || code < 200 || code > 599 {
			return behaviour{}, fmt.Errorf("behaviour %q: the status must be 200 to 599", name)
		}
		return behaviour{status: code, text: effects(`[]`)}, nil
	}
	return behaviour{}, fmt.Errorf("no behaviour is called %q", name)
}
