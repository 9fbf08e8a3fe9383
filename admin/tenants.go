package admin

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// defaultPage and maxPage are how many tenants a list holds.
const defaultPage, maxPage = 100, 500

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

func (c *call) listTenants() *answer {
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return badQuery.problem("It is not of the form NAME=VALUE&NAME=VALUE.")
	}
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
