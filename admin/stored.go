package admin

import (
	"errors"
	"net/http"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/config"
)

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
			return nil, notOurs.problem("It is in the gateway file: change it there.")
		}
		return nil, notOurs.problem("It is in " + served.File + ": change it there.")
	}
	if c.store == nil {
		return nil, noSuchTenant.problem("GET " + Prefix + "tenants lists those that there are.")
	}
	data, err := c.store.Get(c.r.Context(), c.tenant)
	switch {
	case errors.Is(err, ErrAbsent):
		return nil, noSuchTenant.problem("GET " + Prefix + "tenants lists those that there are.")
	case errors.Is(err, ErrForeign):
		return nil, notOurs.problem(c.store.Place(c.tenant) + " is no regular file: put one in its place, or change what it leads to.")
	case err != nil:
		return nil, failure(err)
	}
	doc, err := config.ParseTenant(c.store.Place(c.tenant), data)
	if err != nil {
		return nil, notOurs.problem("Its document was changed by hand and is not valid: correct it there.", config.AsMistakes(err)...)
	}
	if doc.ID() != c.tenant {
		return nil, notOurs.problem(c.store.Place(c.tenant) + " was written by hand and holds another tenant: rename it.")
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
		return storeAbsent.problem(said(err))
	default:
		return storeFailed.problem(said(err))
	}
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
		return nil, matchFailed.problem("It is removed. Add it with POST.")
	}
	if any {
		return old, nil
	}
	for _, tag := range tags {
		if tag == old.tag {
			return old, nil
		}
	}
	return nil, matchFailed.problem("Its ETag is \"" + old.tag + "\" now. Read it again, and send that one in If-Match.")
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
