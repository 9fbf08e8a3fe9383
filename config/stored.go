package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/ahp-gateway/ahp-gateway/sealed"
)

// SecretsKey says where a key is that secrets are stored under: exactly one
// member is set.
type SecretsKey struct {
	Env  string // name of an environment variable
	File string // absolute path
}

// Secrets returns the stored secrets of tenants, or nil where there are none.
// It reads the keys, which load has found good; its errors never quote them.
func (a *AdminAPI) Secrets(env Environ) (*sealed.Folder, error) {
	if len(a.SecretsKeys) == 0 {
		return nil, nil
	}
	if env == nil {
		env = os.LookupEnv
	}
	var keys []*sealed.Key
	for _, k := range a.SecretsKeys {
		text, _ := env(k.Env)
		if k.File != "" {
			data, _, err := readFile(k.File, maxKey)
			if err != nil {
				return nil, errors.New("the key of stored secrets cannot be read, " + err.Error())
			}
			text = string(data)
		}
		key, err := sealed.ParseKey(text)
		if err != nil {
			return nil, errors.New("the key of stored secrets: " + strings.TrimPrefix(err.Error(), "sealed: "))
		}
		keys = append(keys, key)
	}
	return sealed.New(a.SecretsDir, keys), nil
}

// maxSecretsKeys bounds how many keys may open stored secrets.
const maxSecretsKeys = 4

const secretsKeyInstead = "write {env: NAME} or {file: PATH}, of 32 random bytes such as the output of: openssl rand -hex 32"

// storedSecrets reads of the section o of the API where secrets of tenants are
// stored, before the tenants that refer to them. file is the whole gateway file.
func (r *reader) storedSecrets(o, file *object, f *File) {
	one, hasOne := o.get("secretsKey")
	many, hasMany := o.get("secretsKeys")
	dir, hasDir := o.get("secretsDir")
	if !o.usable() {
		return
	}
	a := &f.AdminAPI
	r.storing = hasOne || hasMany
	switch {
	case hasOne && hasMany:
		r.mistake(one, "", "is there beside secretsKeys", "keep one of them")
		return
	case hasOne:
		r.secretsKey(one, a)
	case hasMany:
		if !r.is(many, kindList, "write a list of keys; in each, "+secretsKeyInstead[len("write "):]) {
			return
		}
		if n := len(many.items); n == 0 || n > maxSecretsKeys {
			r.mistake(many, "", "holds "+itoa(n)+" keys", "write one key, or before it a new one that replaces it, at most "+itoa(maxSecretsKeys))
		}
		for i := range many.items {
			r.secretsKey(many.item(i), a)
		}
	case hasDir:
		r.unless(cause{file: r.main, of: "adminApi.secretsKey|adminApi.secretsKeys"}).mistake(dir, "", "is there without a key to store secrets under", "write secretsKey beside it, or remove it")
		return
	default:
		return
	}
	if hasDir {
		a.SecretsDir, _ = r.path(dir)
	} else if at, ok := file.get("tenantsDir"); ok {
		if folder, ok := r.path(at); ok {
			a.SecretsDir = filepath.Join(folder, ".secrets")
		}
	} else {
		m := o.at
		m.path = joinKey(m.path, "secretsDir")
		r.unless(cause{slip: "tenantsDir|adminApi.secretsDir"}).mistake(m, "", "is missing", "write tenantsDir in the gateway file, or here the path of a folder for the secrets")
	}
	r.stored = a.SecretsDir
}

// secretsKey reads where a key is, and looks whether it is one. Nothing of it
// is ever shown.
func (r *reader) secretsKey(s spot, a *AdminAPI) {
	o := r.object(s)
	o.refuseLiterals(secretsKeyInstead)
	env, hasEnv := o.get("env")
	file, hasFile := o.get("file")
	o.done()
	if !o.usable() {
		return
	}
	if hasEnv == hasFile {
		r.unless(oneOf(s, "env", "file")).mistake(s, "", "needs exactly one of env and file", secretsKeyInstead)
		return
	}
	var key SecretsKey
	at, text := env, ""
	if hasEnv {
		name, ok := r.text(env)
		switch {
		case !ok:
			return
		case !envName.MatchString(name):
			r.mistake(env, "", "is not the name of an environment variable", "write letters, digits and _, such as AHP_SECRETS_KEY, never the key itself")
			return
		}
		key.Env = name
		text, ok = r.env(name)
		if !ok && !r.printed {
			r.mistake(env, "", "the environment variable "+cut(name, maxShown)+" is not set", "set it to the key")
			return
		}
	} else {
		path, ok := r.path(file)
		if !ok {
			return
		}
		key.File, at = path, file
		if !r.printed {
			data, err := r.read(path, maxKey)
			if err != nil {
				r.mistake(file, "", "the key file cannot be read, "+err.Error(), "write the path of a file that holds the key alone, relative to the "+r.role)
				return
			}
			text = string(data)
		}
	}
	if _, err := sealed.ParseKey(text); err != nil && !r.printed {
		r.mistake(at, "", "the key there is not 32 bytes in hexadecimal or base64", "make one, such as the output of: openssl rand -hex 32")
		return
	}
	a.SecretsKeys = append(a.SecretsKeys, key)
}

// secretStored reads the name of a stored secret.
func (r *reader) secretStored(s spot, ref *SecretRef, t *terms) *SecretRef {
	if !sealed.IsName(ref.Ref) {
		r.mistake(s, "", "is not the name of a stored secret", "write 1 to 64 lower-case letters, digits, dots, - and _, starting with a letter or digit")
		return nil
	}
	if r.stored != "" && t.tenant != "" && !r.fileBelow(filepath.Join(r.stored, t.tenant), ref.Ref) {
		r.unless(cause{file: r.main, of: "adminApi.secretsDir"}).warn(s, "", "no such secret of the tenant is stored", "set it before events arrive: calls to the backend fail without it")
	}
	return ref
}

// storedSecrets prints where secrets are stored.
func (p *printer) storedSecrets(a *AdminAPI) {
	if len(a.SecretsKeys) == 0 {
		return
	}
	p.open("secretsKeys")
	for _, k := range a.SecretsKeys {
		p.item()
		if k.Env != "" {
			p.text("env", k.Env)
		} else {
			p.text("file", k.File)
		}
		p.close()
	}
	p.close()
	p.text("secretsDir", a.SecretsDir)
}
