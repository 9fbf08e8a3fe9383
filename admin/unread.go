package admin

import "github.com/ahp-gateway/ahp-gateway/config"

// unreadSecret warns where nothing of the tenant that is served reads the secret
// that was set: a name that is misspelt, or a document that does not say yet that
// its references are names of stored secrets.
func (c *call) unreadSecret() []config.Mistake {
	t := c.API.terms.Load()
	if t == nil {
		return nil
	}
	served := t.served(c.tenant)
	if served == nil { // its document is left out, and what it says is not known
		return nil
	}
	m := config.Mistake{Path: "secrets.stored", Warning: true}
	if !served.Secrets.Stored {
		m.What = "nothing reads the secret, because the tenant's document does not say that it has stored secrets"
		m.Instead = "write secrets: {stored: true} in it, and the secret's name as tokenRef, valueRef or clientSecretRef"
		return []config.Mistake{m}
	}
	for ref := range served.SecretRefs() {
		if ref.Ref == c.secret {
			return nil
		}
	}
	m.Path = "registration"
	m.What = "nothing in the tenant's documents refers to a secret of this name"
	m.Instead = "write the name as tokenRef, valueRef or clientSecretRef, or set the one that is referred to"
	return []config.Mistake{m}
}
