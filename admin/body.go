package admin

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// maxBody bounds a request's body, and the document that is stored, in bytes: it
// is as much as is read of a tenant's file.
const maxBody = 1 << 20

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
		return nil, bodyBroken.problem("Send it again.")
	}
	return data, nil
}

// noBody refuses a request with a body.
func (c *call) noBody() *answer {
	data, refused := c.body()
	if refused == nil && len(data) > 0 {
		return bodyUnexpected.problem("Send none.")
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
