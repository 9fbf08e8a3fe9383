package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/config"
)

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

func (c *call) createTenant() *answer {
	c.action = "create"
	noKey, refused := c.wantsNoKey()
	if refused != nil {
		return refused
	}
	doc, refused := c.document()
	if refused != nil {
		return refused
	}
	if noKey && len(doc.KeyDigests()) > 0 {
		return badQuery.problem("The document has keys. Leave them out, or key=none.")
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
			return tenantExists.problem("Choose another id, or replace its document with PUT.")
		case refused.status != http.StatusNotFound:
			return refused
		}
		key := ""
		change := doc
		if !noKey && !doc.HasCredentials() {
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

// wantsNoKey reports whether the query says that no key is to be made: for a
// tenant that comes by tokens alone.
func (c *call) wantsNoKey() (bool, *answer) {
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err == nil && len(query) == 0 {
		return false, nil
	}
	if values := query["key"]; err != nil || len(query) > 1 || len(values) != 1 || values[0] != "none" {
		return false, badQuery.problem("The only parameter is key=none, for a tenant without a key.")
	}
	return true, nil
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
		return busy.problem("Other changes are being made. Try again.")
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
	if old == nil { // it must not have the secrets of another of its id
		begin = func() (func() error, error) {
			failed = c.noSecretsLeft()
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
		return storeFailed.problem("The tenant is removed. Its secrets are not: " + said(left))
	}
	result := Result{ID: c.tenant, Generation: generation, Key: key, Warnings: c.locate(sent, warnings)}
	if change != nil {
		result.Warnings = append(result.Warnings, c.skipped()...)
		result.ETag = `"` + c.after + `"`
		for _, digest := range change.KeyDigests() {
			result.Keys = append(result.Keys, digest[:min(len(digest), shortDigest)])
		}
	}
	a := answerJSON(status, result)
	a.tag = c.after
	return a
}

// skipped warns of the tenant's backends whose policy does not hold.
func (c *call) skipped() (warnings []config.Mistake) {
	if c.options.Skipped == nil {
		return nil
	}
	for _, backend := range c.options.Skipped(c.tenant) {
		warnings = append(warnings, config.Mistake{Path: "registration", Value: backend, Warning: true,
			What:    "the backend could not be asked for its subscriptions, and its policy does not hold until it answers",
			Instead: "see that it runs and that its secret is set, or list its subscriptions"})
	}
	return warnings
}

// refusal answers what Apply could not do; failed is the store's part of it.
func (c *call) refusal(sent *config.TenantDocument, err, failed error) *answer {
	mistakes := config.AsMistakes(err)
	switch {
	case errors.Is(err, errNoLonger):
		return unauthenticated.problem("What the key may do has changed while the request waited. Send it again with one that may.")
	case errors.Is(failed, errSecretsLeft):
		return secretsLeft.problem("Remove them first: DELETE " + Prefix + "tenants/" + c.tenant + "/secrets/NAME, which is ahp-gateway tenant secret remove " + c.tenant + " NAME; GET or list shows their names.")
	case errors.Is(failed, ErrChanged):
		return matchFailed.problem("It was changed by other means at the same time. Read it again.")
	case errors.Is(err, ErrUnavailable):
		return storeAbsent.problem(said(err))
	case failed != nil:
		return storeFailed.problem(said(failed))
	case len(mistakes) > 0:
		for _, m := range mistakes {
			if m.File != c.store.Place(c.tenant) {
				return refusedChange.problem("The configuration has mistakes, not all of them in this document.", c.locate(sent, mistakes)...)
			}
		}
		return c.invalid(sent, mistakes)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return busy.problem("Nothing has changed. Try again.")
	default:
		return refusedChange.problem(said(err))
	}
}
