package config

import (
	"iter"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,255}$`)

// SecretRefs yields every reference to a secret in the tenant's documents.
func (t *Tenant) SecretRefs() iter.Seq[SecretRef] {
	return func(yield func(SecretRef) bool) {
		for _, r := range t.Registrations {
			for i := range r.Hooks {
				h := &r.Hooks[i]
				refs := []*SecretRef{h.Bearer}
				if h.OAuth != nil {
					refs = append(refs, h.OAuth.ClientSecret)
				}
				for j := range h.Headers {
					refs = append(refs, h.Headers[j].Secret)
				}
				for _, ref := range refs {
					if ref != nil && !yield(*ref) {
						return
					}
				}
			}
		}
	}
}

// terms are what a registration document is read under.
type terms struct {
	// alone is set for a document without a gateway file: only the protocol's
	// own rules hold.
	alone bool
	// role is the reader's, of the file that has the tenant.
	role string
	// file is the name of that file.
	file string
	// path leads to the tenant's part of that file: "" for the open tenant and
	// a tenant's own file, else such as tenants[0].
	path     string
	grant    Grant
	tenant   string // id
	settings *settings
	budget   time.Duration // of the whole chain
}

// granted is the cause of a grant that is missing: one that is there and wrong.
func (t *terms) granted(keys ...string) cause {
	for i, key := range keys {
		keys[i] = t.key("secrets." + key)
	}
	return cause{file: t.file, of: strings.Join(keys, "|")}
}

// key names a key of the tenant's part of its file.
func (t *terms) key(name string) string {
	if t.path == "" {
		return name
	}
	return t.path + "." + name
}

// secretRef reads a reference to a secret, which must be one that the gateway
// file grants. What stands there is never shown: a person may have put the
// secret itself there.
func (r *reader) secretRef(env, ref spot, hasEnv bool, t *terms) *SecretRef {
	if hasEnv {
		return r.secretEnv(env, t)
	}
	return r.secretFile(ref, t)
}

func (r *reader) secretEnv(s spot, t *terms) *SecretRef {
	name, ok := r.text(s)
	if !ok {
		return nil
	}
	if !envName.MatchString(name) {
		r.mistake(s, "", "is not the name of an environment variable", "write letters, digits and _, such as POLICY_TOKEN, never the secret itself")
		return nil
	}
	ref := &SecretRef{Env: name}
	switch {
	case t.alone:
		return ref
	case t.grant.AnyEnv:
	case t.grant.EnvPrefix == "":
		r.unless(t.granted("envPrefix")).mistake(s, "", "no environment variable is granted here", "write "+t.key("secrets.envPrefix")+" in the "+t.role+" and start the name with it")
		return ref
	case !strings.HasPrefix(name, t.grant.EnvPrefix):
		r.mistake(s, "", "the environment variable is not granted here", "write a name that starts with "+t.grant.EnvPrefix+", as "+t.key("secrets.envPrefix")+" says, or change that")
		return ref
	}
	if v, set := r.lookup(name); !set || v == "" {
		r.warn(s, "", "the environment variable "+cut(name, maxShown)+" is not set", "set it before events arrive: calls to the backend fail without it")
	}
	return ref
}

func (r *reader) secretFile(s spot, t *terms) *SecretRef {
	name, ok := r.text(s)
	if !ok {
		return nil
	}
	if name == "" {
		r.mistake(s, "", "is empty", "write a reference to a secret")
		return nil
	}
	ref := &SecretRef{Ref: name}
	if t.alone {
		return ref
	}
	if t.grant.Stored {
		return r.secretStored(s, ref, t)
	}
	if !isCleanPath(name) {
		r.mistake(s, "", "is not a clean relative path", `write a path below `+t.key("secrets.dir")+` such as policy/token, without "..", "\" or a leading "/"`)
		return nil
	}
	if t.grant.Dir == "" {
		instead := "write " + t.key("secrets.dir") + " in the " + t.role + "; the reference is a path below it"
		if r.storing {
			instead = "write " + t.key("secrets") + ": {stored: true}; the reference is the name of a secret that the admin API has stored"
		}
		r.unless(t.granted("dir", "stored")).mistake(s, "", "no folder of secrets is granted here", instead)
		return ref
	}
	if !r.fileBelow(t.grant.Dir, name) {
		r.warn(s, "", "there is no such file below "+t.key("secrets.dir"), "put it there before events arrive: calls to the backend fail without it")
	}
	return ref
}

// isCleanPath reports whether name is a relative slash path that stays below
// its folder in every reading.
func isCleanPath(name string) bool {
	return len(name) <= 1024 && !strings.ContainsAny(name, "\\\x00") && name != "." &&
		path.Clean(name) == name && filepath.IsLocal(filepath.FromSlash(name))
}

// isFileBelow reports whether name is a regular file below dir, and not behind
// a link that leads out of it.
func isFileBelow(dir, name string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(name))
	return err == nil && info.Mode().IsRegular()
}

// literalNames are members that would hold a credential itself.
var literalNames = map[string]bool{
	"token": true, "bearer": true, "bearertoken": true, "accesstoken": true, "refreshtoken": true,
	"authtoken": true, "idtoken": true, "password": true, "passwd": true, "passphrase": true,
	"secret": true, "clientsecret": true, "apikey": true, "credential": true, "credentials": true,
	"privatekey": true, "value": true, "authorization": true,
}

// withoutJoints returns a name in lower case and without - and _.
func withoutJoints(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}

// refuseLiterals reports members that hold a credential itself; a document is
// portable, so it may only refer to one. AHP-SEC-001.
func (o *object) refuseLiterals(instead string) {
	if !o.usable() {
		return
	}
	for _, f := range o.at.fields {
		if !literalNames[withoutJoints(f.key)] {
			continue
		}
		o.refused = append(o.refused, f.key)
		o.r.mistake(o.at.member(f.key, f.value), "", "a credential may not stand in the document", instead)
	}
}
