package admin

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// Problem is what a request that failed is answered with (RFC 9457).
type Problem struct {
	// Type tells programs what is wrong: problemType and a word.
	Type string `json:"type"`
	// Title says the same to people, and is the same for every problem of a type.
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is about this one.
	Detail string `json:"detail,omitempty"`
	// Mistakes are those of the request's document, which have no file, and those
	// that the configuration has elsewhere.
	Mistakes []config.Mistake `json:"mistakes,omitempty"`
}

const problemType = "urn:ahp-gateway:admin:"

// kind is one type of problem.
type kind uint8

// The kinds of problems.
const (
	unauthenticated kind = iota
	crossOrigin
	noSuchPath
	noSuchTenant
	noSuchKey
	methodNotAllowed
	badQuery
	badDigest
	badSecretName
	badMatch
	badMediaType
	bodyTooLarge
	bodyBroken
	bodyUnexpected
	badDocument
	refusedChange
	matchNeeded
	matchFailed
	tenantExists
	secretsLeft
	notOurs
	tooManyKeys
	onlyKey
	noSecrets
	noSuchSecret
	tooManySecrets
	badSecret
	busy
	storeFailed
	storeAbsent
	kindCount
)

// kinds are what is said of each.
var kinds = [kindCount]struct {
	word   string
	status int
	title  string
}{
	unauthenticated:  {"unauthenticated", http.StatusUnauthorized, "An admin key is needed."},
	crossOrigin:      {"cross-origin", http.StatusForbidden, "Changes from a page in a browser are not accepted."},
	noSuchPath:       {"no-such-path", http.StatusNotFound, "There is nothing here."},
	noSuchTenant:     {"no-such-tenant", http.StatusNotFound, "There is no such tenant."},
	noSuchKey:        {"no-such-key", http.StatusNotFound, "The tenant has no such key."},
	methodNotAllowed: {"method-not-allowed", http.StatusMethodNotAllowed, "This method is not for this address."},
	badQuery:         {"bad-query", http.StatusBadRequest, "The query is not usable."},
	badDigest:        {"bad-digest", http.StatusBadRequest, "This is not the start of a key's digest."},
	badSecretName:    {"bad-secret-name", http.StatusBadRequest, "This cannot be the name of a secret."},
	badMatch:         {"bad-if-match", http.StatusBadRequest, "If-Match is not usable."},
	badMediaType:     {"media-type", http.StatusUnsupportedMediaType, "The body's media type is not one that is read here."},
	bodyTooLarge:     {"too-large", http.StatusRequestEntityTooLarge, "The body, or what would be stored of it, is too large."},
	bodyBroken:       {"broken-body", http.StatusBadRequest, "The body could not be read."},
	bodyUnexpected:   {"unexpected-body", http.StatusBadRequest, "No body is expected here."},
	badDocument:      {"bad-document", http.StatusUnprocessableEntity, "The document is not valid."},
	refusedChange:    {"refused", http.StatusUnprocessableEntity, "The gateway cannot be served with this change."},
	matchNeeded:      {"if-match-needed", http.StatusPreconditionRequired, "If-Match is needed."},
	matchFailed:      {"if-match-failed", http.StatusPreconditionFailed, "The tenant has been changed meanwhile."},
	tenantExists:     {"exists", http.StatusConflict, "There is a tenant of this id already."},
	secretsLeft:      {"secrets-left", http.StatusConflict, "Secrets of an earlier tenant of this id are stored."},
	notOurs:          {"not-managed", http.StatusConflict, "The tenant is not one that this API changes."},
	tooManyKeys:      {"too-many-keys", http.StatusConflict, "The tenant has two keys already."},
	onlyKey:          {"only-key", http.StatusConflict, "It is the tenant's only key."},
	noSecrets:        {"no-secrets", http.StatusConflict, "No secrets are stored here."},
	noSuchSecret:     {"no-such-secret", http.StatusNotFound, "The tenant has no such secret."},
	tooManySecrets:   {"too-many-secrets", http.StatusConflict, "The tenant has as many secrets as it may have."},
	badSecret:        {"bad-secret", http.StatusUnprocessableEntity, "The body is not usable as a secret."},
	busy:             {"busy", http.StatusServiceUnavailable, "The change could not be made in time."},
	storeFailed:      {"store-failed", http.StatusInternalServerError, "The store failed."},
	storeAbsent:      {"store-unavailable", http.StatusServiceUnavailable, "The store of tenants cannot be reached, or must not be changed for now."},
}

// problem returns the answer that says what is wrong.
func (k kind) problem(detail string, mistakes ...config.Mistake) *answer {
	p := Problem{
		Type: problemType + kinds[k].word, Title: kinds[k].title, Status: kinds[k].status,
		Detail: bounded(detail), Mistakes: mistakes[:min(len(mistakes), maxMistakes)],
	}
	return &answer{status: p.Status, mediaType: "application/problem+json", body: marshal(p)}
}

// said returns an error without what tells programmers where it is from.
func said(err error) string {
	lines := strings.Split(err.Error(), "\n") // of errors.Join
	for i, line := range lines {
		line = strings.TrimPrefix(line, ErrUnavailable.Error()+": ")
		for _, prefix := range []string{"admin: ", "sealed: "} {
			line = strings.TrimPrefix(line, prefix)
		}
		lines[i] = line
	}
	return strings.Join(lines, "; ")
}

// maxDetail bounds the text of a problem, in bytes.
const maxDetail = 1024

func bounded(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetail], "") + "…"
}

// maxMistakes bounds the mistakes of an answer.
const maxMistakes = 100

func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // nothing that is answered here can fail to be encoded
	}
	return append(data, '\n')
}
