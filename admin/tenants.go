package admin

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/config"
)

const (
	// maxBody bounds a request's body, and the document that is stored, in
	// bytes: it is as much as is read of a tenant's file.
	maxBody = 1 << 20
	// defaultPage and maxPage are how many tenants a list holds.
	defaultPage, maxPage = 100, 500
)

// Tenant is one row of the list of tenants.
type Tenant struct {
	ID string `json:"id"`
	// ETag is the tag that If-Match takes, in its quotes.
	ETag string `json:"etag"`
	// Managed is true where the API can change the tenant.
	Managed bool `json:"managed"`
	// Source is the file that the tenant is in, or "" for the gateway file
	// and while the last good configuration is served.
	Source string `json:"source"`
	// Keys is how many keys the tenant has.
	Keys int `json:"keys"`
}

// Page is a part of the list of tenants, which is ordered by id.
type Page struct {
	Tenants []Tenant `json:"tenants"`
	// LastGood is true while the last good configuration is served, because the
	// present one has a mistake: then these are its tenants, wherever they were
	// from, and the API changes none.
	LastGood bool `json:"lastGood,omitempty"`
	// Next is the cursor of the page after this one, left out on the last.
	Next string `json:"next,omitempty"`
}

// Result is what a change came to.
type Result struct {
	ID string `json:"id"`
	// ETag is that of the document as it is now, left out for a removed one.
	ETag string `json:"etag,omitempty"`
	// Generation numbers the configuration that serves the change.
	Generation uint64 `json:"generation"`
	// Key is a key that was made, which is told this once.
	Key string `json:"key,omitempty"`
	// Keys are the starts of the digests of the tenant's keys, the oldest first,
	// with "" for a key by reference.
	Keys []string `json:"keys,omitempty"`
	// Secret is a stored secret as it is now.
	Secret *Secret `json:"secret,omitempty"`
	// Warnings are what is doubtful about the document.
	Warnings []config.Mistake `json:"warnings,omitempty"`
}

func (c *call) listTenants() *answer {
	query := c.r.URL.Query()
	limit, cursor := defaultPage, ""
	for name, values := range query {
		switch {
		case len(values) != 1:
			return badQuery.problem("A parameter is there twice.")
		case name == "limit":
			n, err := strconv.Atoi(values[0])
			if err != nil || n < 1 || n > maxPage {
				return badQuery.problem("limit is a number from 1 to " + strconv.Itoa(maxPage) + ".")
			}
			limit = n
		case name == "cursor":
			if !config.IsTenantID(values[0]) {
				return badQuery.problem("cursor is what a page has as next.")
			}
			cursor = values[0]
		default:
			return badQuery.problem("The parameters are limit and cursor.")
		}
	}
	page := Page{Tenants: []Tenant{}, LastGood: c.lastGood}
	for _, t := range c.tenants {
		if t.ID <= cursor {
			continue
		}
		if len(page.Tenants) == limit {
			page.Next = page.Tenants[limit-1].ID
			break
		}
		tag, managed, refused := c.tag(t)
		if refused != nil {
			return refused
		}
		page.Tenants = append(page.Tenants, Tenant{ID: t.ID, ETag: `"` + tag + `"`, Managed: managed, Source: t.File, Keys: len(t.Keys)})
	}
	return answerJSON(http.StatusOK, page)
}

// tag returns the tag of a tenant that is served, and whether the API can change
// it: what was put in its document's place by other means it cannot.
func (c *call) tag(t *config.Tenant) (tag string, managed bool, refused *answer) {
	managed = c.manages(t)
	if managed {
		data, err := c.store.Get(c.r.Context(), t.ID)
		if err == nil {
			return tagOf(data), true, nil
		}
		if refused := failure(err); refused != nil {
			return "", false, refused
		}
		managed = !errors.Is(err, ErrForeign)
	}
	return tagOf(t.Document().JSON()), managed, nil
}

func (c *call) getTenant() *answer {
	served := c.served(c.tenant)
	if served != nil && !c.manages(served) {
		return c.show(served)
	}
	old, refused := c.stored()
	if refused != nil {
		if served != nil { // what is stored cannot be shown, what is served can
			return c.show(served)
		}
		return refused
	}
	return &answer{status: http.StatusOK, mediaType: "application/json", tag: old.tag, body: old.doc.Redacted().JSON()}
}

// show answers with a tenant as it is in effect.
func (c *call) show(t *config.Tenant) *answer {
	body := t.Document().JSON()
	return &answer{status: http.StatusOK, mediaType: "application/json", tag: tagOf(body), body: body}
}

// stored is a document of the store.
type stored struct {
	doc *config.TenantDocument
	tag string
}

// stored returns the stored document of the call's tenant, if the API may
// change it.
func (c *call) stored() (*stored, *answer) {
	if served := c.served(c.tenant); served != nil && !c.manages(served) {
		if served.File == "" {
			return nil, notOurs.problem("It is in the gateway file.")
		}
		return nil, notOurs.problem("It is in " + served.File + ".")
	}
	if c.store == nil {
		return nil, noSuchTenant.problem("")
	}
	data, err := c.store.Get(c.r.Context(), c.tenant)
	switch {
	case errors.Is(err, ErrAbsent):
		return nil, noSuchTenant.problem("")
	case errors.Is(err, ErrForeign):
		return nil, notOurs.problem(c.store.Place(c.tenant) + " is no regular file.")
	case err != nil:
		return nil, failure(err)
	}
	doc, err := config.ParseTenant(c.store.Place(c.tenant), data)
	if err != nil {
		return nil, notOurs.problem("Its document was changed by hand and is not valid.", config.AsMistakes(err)...)
	}
	if doc.ID() != c.tenant {
		return nil, notOurs.problem(c.store.Place(c.tenant) + " was written by hand and holds another tenant.")
	}
	return &stored{doc, tagOf(data)}, nil
}

// failure answers that the store could not be read, unless that is what err says
// of one document.
func failure(err error) *answer {
	switch {
	case errors.Is(err, ErrAbsent), errors.Is(err, ErrForeign):
		return nil
	case errors.Is(err, ErrUnavailable):
		return storeAbsent.problem(err.Error())
	default:
		return storeFailed.problem(err.Error())
	}
}

func (c *call) createTenant() *answer {
	c.action = "create"
	doc, refused := c.document()
	if refused != nil {
		return refused
	}
	if id := doc.ID(); config.IsTenantID(id) {
		c.tenant = id
	} else {
		return c.invalid(doc, config.Mistakes{{Path: "id", What: "is missing or not a tenant id",
			Instead: "write 1 to 63 lower-case letters, digits and -, starting with a letter or digit"}})
	}
	return c.inTurn(func() *answer {
		switch _, refused := c.stored(); {
		case c.store == nil:
			return notOurs.problem("The gateway file has no tenantsDir to put it into, or its store cannot be used.")
		case c.served(c.tenant) != nil || refused == nil:
			return tenantExists.problem("")
		case refused.status != http.StatusNotFound:
			return refused
		}
		key := ""
		change := doc
		if !doc.HasCredentials() {
			key = newKey(c.tenant)
			change = doc.WithKeys(nil, digestOf(key))
		}
		a := c.apply(http.StatusCreated, doc, change, nil, key)
		if a.status == http.StatusCreated {
			a.location = Prefix + "tenants/" + c.tenant
		}
		return a
	})
}

func (c *call) putTenant() *answer {
	c.action = "put"
	doc, refused := c.document()
	if refused != nil {
		return refused
	}
	if doc.ID() != c.tenant {
		return c.invalid(doc, config.Mistakes{{Path: "id", What: "is not the id of the address", Instead: "write " + c.tenant}})
	}
	return c.inTurn(func() *answer {
		old, refused := c.matched()
		if refused != nil {
			return refused
		}
		return c.apply(http.StatusOK, doc, doc, old, "")
	})
}

func (c *call) deleteTenant() *answer {
	c.action = "delete"
	if refused := c.noBody(); refused != nil {
		return refused
	}
	return c.inTurn(func() *answer {
		old, refused := c.matched()
		if refused != nil {
			return refused
		}
		return c.apply(http.StatusOK, nil, nil, old, "")
	})
}

// inTurn has one change made at a time.
func (c *call) inTurn(change func() *answer) *answer {
	select {
	case c.turn <- struct{}{}:
	case <-c.r.Context().Done():
		return busy.problem("Other changes are being made.")
	}
	defer func() { <-c.turn }()
	// The change before this one may have changed what is served.
	if t := c.API.terms.Load(); t != nil && (t.trust || !c.trust) {
		c.terms = t
	}
	if c.lastGood {
		return notOurs.problem("The last good configuration is served: correct the file first.")
	}
	return change()
}

// matched returns the stored document if it is the one that If-Match names.
func (c *call) matched() (*stored, *answer) {
	old, refused := c.stored()
	values := c.r.Header.Values("If-Match")
	switch {
	case refused != nil && refused.status != http.StatusNotFound:
		return nil, refused
	case len(values) == 0:
		if refused != nil {
			return nil, refused
		}
		return nil, matchNeeded.problem("Send If-Match with the ETag that GET answers with.")
	}
	any, tags, ok := parseMatch(values)
	if !ok {
		return nil, badMatch.problem(`Write If-Match: "TAG".`)
	}
	if refused != nil {
		return nil, matchFailed.problem("There is no such tenant.")
	}
	if any {
		return old, nil
	}
	for _, tag := range tags {
		if tag == old.tag {
			return old, nil
		}
	}
	return nil, matchFailed.problem("Its ETag is \"" + old.tag + "\".")
}

// parseMatch returns the tags of If-Match headers, or that they name any
// document. Weak tags match nothing, as RFC 9110 has it.
func parseMatch(values []string) (any bool, tags []string, ok bool) {
	for _, part := range strings.Split(strings.Join(values, ","), ",") {
		part = strings.Trim(part, " \t")
		switch {
		case part == "*":
			any = true
		case len(part) >= 2 && part[0] == '"' && strings.IndexByte(part[1:], '"') == len(part)-2:
			tags = append(tags, part[1:len(part)-1])
		case strings.HasPrefix(part, `W/"`):
		default:
			return false, nil, false
		}
	}
	return any, tags, !any || len(tags) == 0
}

// document reads the request's body.
func (c *call) document() (*config.TenantDocument, *answer) {
	mediaType, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" && mediaType != "application/yaml" {
		return nil, badMediaType.problem("Send application/json or application/yaml.")
	}
	data, refused := c.body()
	if refused != nil {
		return nil, refused
	}
	if mediaType == "application/json" && !strings.HasPrefix(strings.TrimLeft(string(data), " \t\r\n"), "{") {
		return nil, badDocument.problem("", config.Mistake{Line: 1, Col: 1, What: "the document is no JSON object", Instead: "write { first, or send application/yaml"})
	}
	doc, err := config.ParseTenant("", data)
	if err != nil {
		return nil, badDocument.problem("", config.AsMistakes(err)...)
	}
	// Before anything is read for it: what reading a file says of it is not for
	// those who may not name one.
	mistakes := doc.LiteralCredentials()
	if !c.trust {
		mistakes = append(mistakes, doc.OperatorOnly()...)
	}
	if len(mistakes) > 0 {
		return nil, c.invalid(doc, mistakes)
	}
	return doc, nil
}

func (c *call) body() ([]byte, *answer) { return c.bodyOf(maxBody) }

// bodyOf reads a body of at most so many bytes.
func (c *call) bodyOf(most int) ([]byte, *answer) {
	if c.r.Header.Get("Content-Encoding") != "" {
		return nil, badMediaType.problem("Send the body without Content-Encoding.")
	}
	data, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, int64(most)))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, bodyTooLarge.problem("It may have " + strconv.Itoa(most) + " bytes.")
	case err != nil:
		return nil, bodyBroken.problem("")
	}
	return data, nil
}

// noBody refuses a request with a body.
func (c *call) noBody() *answer {
	data, refused := c.body()
	if refused == nil && len(data) > 0 {
		return bodyUnexpected.problem("")
	}
	return refused
}

// emptyPost refuses a POST that holds more than an empty object, or has none of
// the media types: a page in a browser can send one of any other type unasked.
func (c *call) emptyPost(types ...string) *answer {
	mediaType, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(types, mediaType) {
		return badMediaType.problem("Send application/json, with {} or nothing as body.")
	}
	return c.emptyBody()
}

func (c *call) emptyBody() *answer {
	data, refused := c.body()
	if refused != nil {
		return refused
	}
	if text := strings.TrimSpace(string(data)); text != "" && text != "{}" {
		return bodyUnexpected.problem("Send {} or nothing.")
	}
	return nil
}

// invalid answers with what is wrong in the document of the request.
func (c *call) invalid(doc *config.TenantDocument, mistakes []config.Mistake) *answer {
	return badDocument.problem("", c.locate(doc, mistakes)...)
}

// locate returns the first mistakes with the positions that those of the
// tenant's own document have in the request's, which may be nil.
func (c *call) locate(doc *config.TenantDocument, mistakes []config.Mistake) []config.Mistake {
	mistakes = mistakes[:min(len(mistakes), maxMistakes)]
	located := make([]config.Mistake, len(mistakes))
	for i, m := range mistakes {
		if doc != nil && (m.File == "" || m.File == c.store.Place(c.tenant)) {
			m = doc.Locate(m)
		}
		located[i] = m
	}
	return located
}

// apply makes the gateway serve the tenant's document change, or nil for none,
// in place of old, or nil for none, and answers. sent is the document of the
// request, if there is one, and key what is to be told.
func (c *call) apply(status int, sent, change *config.TenantDocument, old *stored, key string) *answer {
	var data []byte
	match := ""
	if old != nil {
		match, c.before = old.tag, old.tag
	}
	if change != nil {
		if data = change.JSON(); len(data) > maxBody {
			return bodyTooLarge.problem("It is stored as indented JSON, which would have " + strconv.Itoa(len(data)) + " bytes, and may have " + strconv.Itoa(maxBody) + ".")
		}
		c.after = tagOf(data)
	}
	var warnings []config.Mistake
	var failed, left error // of the store, and of secrets that stay
	var begin func() (undo func() error, err error)
	if old == nil { // a tenant of that id before, which others removed, leaves nothing to it
		begin = func() (func() error, error) {
			failed = c.clearSecrets()
			return func() error { return nil }, failed
		}
	}
	generation, err := c.options.Apply(c.r.Context(), Change{
		Change: config.Change{Path: c.store.Place(c.tenant), Data: data},
		Begin:  begin,
		Check: func(all []config.Mistake) error {
			if !c.stillMay() {
				return errNoLonger
			}
			var unknown config.Mistakes
			warnings = nil // of an attempt before this
			for _, m := range all {
				if m.File != c.store.Place(c.tenant) {
					continue
				}
				if sent != nil && m.What == config.UnknownKey {
					m.Warning, m.Instead = false, strings.TrimSuffix(m.Instead, ": it is ignored")
					unknown = append(unknown, m)
				}
				warnings = append(warnings, m)
			}
			if len(unknown) > 0 {
				return unknown
			}
			return nil
		},
		Commit: func() error {
			// It has begun, so it is brought to its end.
			ctx := context.WithoutCancel(c.r.Context())
			if change == nil {
				if failed = c.store.Delete(ctx, c.tenant, match); failed == nil {
					// It is gone, whatever becomes of its secrets.
					left = c.clearSecrets()
				}
			} else {
				failed = c.store.Put(ctx, c.tenant, data, match)
			}
			return failed
		},
	})
	if err != nil {
		c.after = ""
		if !errors.Is(err, failed) {
			failed = nil // of an attempt before the last one
		}
		return c.refusal(sent, err, failed)
	}
	c.generation = generation
	if left != nil {
		return storeFailed.problem("The tenant is removed. Its secrets are not: " + left.Error())
	}
	result := Result{ID: c.tenant, Generation: generation, Key: key, Warnings: c.locate(sent, warnings)}
	if change != nil {
		result.ETag = `"` + c.after + `"`
		for _, digest := range change.KeyDigests() {
			result.Keys = append(result.Keys, digest[:min(len(digest), shortDigest)])
		}
	}
	a := answerJSON(status, result)
	a.tag = c.after
	return a
}

// refusal answers what Apply could not do; failed is the store's part of it.
func (c *call) refusal(sent *config.TenantDocument, err, failed error) *answer {
	mistakes := config.AsMistakes(err)
	switch {
	case errors.Is(err, errNoLonger):
		return unauthenticated.problem("What the key may do has changed while the request waited.")
	case errors.Is(failed, ErrChanged):
		return matchFailed.problem("It was changed by other means at the same time.")
	case errors.Is(err, ErrUnavailable):
		return storeAbsent.problem(err.Error())
	case failed != nil:
		return storeFailed.problem(failed.Error())
	case len(mistakes) > 0:
		for _, m := range mistakes {
			if m.File != c.store.Place(c.tenant) {
				return refusedChange.problem("The configuration has mistakes, not all of them in this document.", c.locate(sent, mistakes)...)
			}
		}
		return c.invalid(sent, mistakes)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return busy.problem("Nothing has changed.")
	default:
		return refusedChange.problem(err.Error())
	}
}
