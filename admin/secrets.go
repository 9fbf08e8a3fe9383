package admin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/sealed"
)

// Secret is what is told of a stored secret, whose value is told nobody.
type Secret struct {
	Name string `json:"name"`
	// Set is when its value was set.
	Set time.Time `json:"set,omitzero"`
	// Digest is eight hexadecimal digits that another value would change, and
	// sealing by another key too. It says nothing of the value to those without
	// the key.
	Digest string `json:"digest,omitempty"`
	// Outdated is true where a key has sealed it that is not the first any more.
	Outdated bool `json:"outdated,omitempty"`
	// Unusable is true where it does not open, so that calls that need it fail.
	Unusable bool `json:"unusable,omitempty"`
}

// SecretList are the stored secrets of a tenant, by name.
type SecretList struct {
	Secrets []Secret `json:"secrets"`
}

// secretsOf returns what is told of the tenant's secrets.
func (c *call) secretsOf() ([]Secret, error) {
	found, err := c.secrets.List(c.tenant)
	list := make([]Secret, len(found))
	for i, s := range found {
		list[i] = Secret{Name: s.Name, Set: s.Set, Digest: s.Digest, Outdated: s.Outdated, Unusable: s.Digest == ""}
	}
	return list, err
}

// mayHaveSecrets refuses what is asked of a tenant that can have none.
func (c *call) mayHaveSecrets() *answer {
	if _, refused := c.stored(); refused != nil {
		return refused
	}
	if c.secrets == nil {
		return noSecrets.problem("The gateway file has no adminApi.secretsKey to store them under.")
	}
	return nil
}

// mayLoseSecrets is mayHaveSecrets for what shows or removes them: a tenant that
// is no more can have left some.
func (c *call) mayLoseSecrets() *answer {
	refused := c.mayHaveSecrets()
	if refused == nil || refused.status != http.StatusNotFound || c.store == nil || c.secrets == nil {
		return refused
	}
	switch left, err := c.secrets.Holds(c.tenant); {
	case err != nil:
		return storeFailed.problem(said(err))
	case left:
		return nil
	}
	return refused
}

func (c *call) listSecrets() *answer {
	if refused := c.mayLoseSecrets(); refused != nil {
		return refused
	}
	list, err := c.secretsOf()
	if err != nil {
		return storeFailed.problem(said(err))
	}
	return answerJSON(http.StatusOK, SecretList{list})
}

func (c *call) putSecret() *answer {
	c.action = "put-secret"
	mediaType, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || mediaType != "text/plain" && mediaType != "application/octet-stream" {
		return badMediaType.problem("Send text/plain or application/octet-stream.")
	}
	value, refused := c.bodyOf(sealed.MaxValue)
	switch {
	case refused != nil:
		return refused
	case len(value) == 0:
		return badSecret.problem("It is empty: send the secret itself.")
	case bytes.ContainsAny(value, "\r\n\x00"):
		return badSecret.problem("It has a line break or a NUL: send it without. Some programs put a line break at the end.")
	}
	return c.changeSecrets(c.mayHaveSecrets, func(unchanged func() error) (func() error, error) {
		undo, err := c.secrets.Put(c.tenant, c.secret, string(value), time.Now())
		if err != nil {
			return nil, err
		}
		// What was meant for the tenant that was asked about is not left to one that
		// another replica has made since.
		if err := unchanged(); err != nil {
			return nil, errors.Join(err, undo())
		}
		return undo, nil
	})
}

func (c *call) deleteSecret() *answer {
	c.action = "delete-secret"
	if refused := c.noBody(); refused != nil {
		return refused
	}
	return c.changeSecrets(c.mayLoseSecrets, func(unchanged func() error) (func() error, error) {
		undo, err := c.secrets.Delete(c.tenant, c.secret)
		return func() error {
			// Another replica may have removed the tenant, and its secrets with it:
			// then this one must not come back.
			if err := unchanged(); err != nil {
				return err
			}
			return undo()
		}, err
	})
}

// changeSecrets has the gateway serve the tenant with a secret changed, if may
// refuses nothing, and answers. What begin does is taken back where the gateway
// cannot be served so. Nothing is done where the tenant's document is another one
// by the time of its turn, which unchanged reports at any later time too.
func (c *call) changeSecrets(may func() *answer, begin func(unchanged func() error) (undo func() error, err error)) *answer {
	return c.inTurn(func() *answer {
		was, err := c.documentTag() // first, so that what happens in between counts
		if refused := may(); refused != nil {
			return refused
		}
		if err != nil {
			return cmp.Or(failure(err), storeFailed.problem(said(err)))
		}
		unchanged := func() error {
			is, err := c.documentTag()
			if err == nil && is != was {
				err = ErrChanged
			}
			return err
		}
		var warnings []config.Mistake
		var failed error
		generation, err := c.options.Apply(c.r.Context(), Change{
			Begin: func() (undo func() error, err error) {
				if failed = unchanged(); failed == nil {
					undo, failed = begin(unchanged)
				}
				return undo, failed
			},
			Check: func(all []config.Mistake) error {
				if !c.stillMay() {
					return errNoLonger
				}
				for _, m := range all {
					if m.File == c.store.Place(c.tenant) {
						warnings = append(warnings, m)
					}
				}
				return nil
			},
			Commit: func() error { return nil }, // Begin has done it
		})
		switch {
		case errors.Is(failed, sealed.ErrAbsent):
			return noSuchSecret.problem("GET of its secrets lists those that there are.")
		case errors.Is(failed, ErrChanged):
			return busy.problem("The tenant was changed by other means at the same time. Nothing has changed.")
		case errors.Is(failed, sealed.ErrFull):
			return tooManySecrets.problem("It may have " + strconv.Itoa(sealed.MaxSecrets) + ". Delete one first.")
		case err != nil:
			return c.refusal(nil, err, failed)
		}
		c.generation = generation
		result := Result{ID: c.tenant, Generation: generation, Warnings: c.locate(nil, warnings)}
		list, err := c.secretsOf()
		if err != nil {
			return storeFailed.problem(said(err))
		}
		for i := range list {
			if list[i].Name == c.secret { // it was set
				result.Secret = &list[i]
				result.Warnings = append(result.Warnings, c.unreadSecret()...)
			}
		}
		return answerJSON(http.StatusOK, result)
	})
}

// resealSecrets seals the tenant's secrets by the first key, so that others can
// go. Nothing that is served changes.
func (c *call) resealSecrets() *answer {
	c.action = "reseal-secrets"
	if refused := c.emptyPost("application/json"); refused != nil {
		return refused
	}
	return c.changeSecrets(c.mayHaveSecrets, func(func() error) (func() error, error) {
		_, err := c.secrets.Reseal(c.tenant)
		return func() error { return nil }, err // they say what they said before
	})
}

// documentTag returns the tag of the tenant's document, "" where there is none.
func (c *call) documentTag() (string, error) {
	if c.store == nil {
		return "", nil
	}
	// What has begun is taken back also where nobody waits for the answer any more.
	data, err := c.store.Get(context.WithoutCancel(c.r.Context()), c.tenant)
	switch {
	case errors.Is(err, ErrAbsent):
		return "", nil
	case err != nil:
		return "", err
	}
	return tagOf(data), nil
}

// errSecretsLeft says that secrets are stored of a tenant that there is not.
var errSecretsLeft = errors.New("admin: secrets of an earlier tenant of this id are stored")

// noSecretsLeft reports as an error that the tenant, which is to be made, would
// find secrets. They are not removed for it: another replica may be making it
// too, or whoever removed its document by hand may want to put that back.
func (c *call) noSecretsLeft() error {
	if c.secrets == nil {
		return nil
	}
	left, err := c.secrets.Holds(c.tenant)
	if err == nil && left {
		err = errSecretsLeft
	}
	return err
}

// clearSecrets removes the tenant's stored secrets, if there are any.
func (c *call) clearSecrets() error {
	if c.secrets == nil {
		return nil
	}
	return c.secrets.Clear(c.tenant)
}
