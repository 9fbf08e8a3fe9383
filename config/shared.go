package config

import (
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Shared is the state that replicas of the gateway share: answers to events, and
// the rates and quotas of tenants. With an empty Redis.URL there is none.
type Shared struct {
	Redis Redis
	// OnFailure is what a request gets that needs the state while it cannot be
	// had: "local" (default) uses that of this replica alone, "refuse" answers an error: 503
	// before the event is known, -32003 then.
	OnFailure string
}

// Redis says where a Redis or Valkey server is.
type Redis struct {
	URL      string // redis://host:port/database, or rediss:// for TLS, without userinfo
	Address  string // host:port of URL
	Database int    // of URL; default 0
	TLS      bool   // of URL
	Username string // "" is the server's default user
	// The password is in at most one of PasswordEnv, an environment variable,
	// and PasswordFile. With neither there is none.
	PasswordEnv, PasswordFile string
	CAFile                    string        // PEM bundle that replaces the platform's trust roots
	Timeout                   time.Duration // of each call
	Prefix                    string        // of every key
}

const (
	redisPort = "6379"
	// maxShared bounds how long a call for shared state may hold a request up.
	maxShared = 5 * time.Second
	// maxDatabase is the highest number of a database that may be written.
	maxDatabase = 1 << 16
)

var keyPrefix = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$`)

// shared reads the state that replicas share.
func (r *reader) shared(s spot) Shared {
	sh := Shared{OnFailure: "local"}
	o := r.object(s)
	if at, ok := o.need("redis", "write redis: {url: redis://host:6379/0}"); ok {
		sh.Redis = r.redis(at)
	}
	o.choice("onFailure", &sh.OnFailure, "local", "refuse")
	o.done()
	return sh
}

func (r *reader) redis(s spot) Redis {
	db := Redis{Timeout: 50 * time.Millisecond, Prefix: "ahp"}
	o := r.object(s)
	o.refuseLiterals("write passwordEnv with the name of an environment variable, or passwordFile with a path")
	if at, ok := o.need("url", redisInstead); ok {
		r.redisURL(at, &db)
	}
	if at, ok := o.get("username"); ok {
		if text, ok := r.text(at); ok {
			if text == "" || len(text) > 256 || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
				r.mistake(at, shown(text), "is empty, longer than 256 bytes, or holds characters that are not printable ASCII", "write the name of a user of the server, or leave it out for the default one")
			} else {
				db.Username = text
			}
		}
	}
	r.redisPassword(o, &db)
	if at, ok := o.get("caFile"); ok {
		db.CAFile = r.caFile(at)
		if db.URL != "" && !db.TLS {
			r.mistake(at, "", "has no effect without TLS", "write rediss:// in the url, or remove it")
		}
	}
	if at, ok := o.get("timeout"); ok {
		if v, ok := r.duration(at); ok {
			if v > maxShared {
				r.mistake(at, shown(at.text), "is longer than 5s", "write how long a request may wait for the server, such as 50ms")
			} else {
				db.Timeout = v
			}
		}
	}
	if at, ok := o.get("prefix"); ok {
		if text, ok := r.text(at); ok {
			if !keyPrefix.MatchString(text) {
				r.mistake(at, shown(text), "is not usable at the start of a key", "write 1 to 64 letters, digits and _ . : -, starting with a letter or digit, such as ahp")
			} else {
				db.Prefix = text
			}
		}
	}
	o.done()
	return db
}

// redisPassword reads where the password is. What stands there is never shown.
func (r *reader) redisPassword(o *object, db *Redis) {
	env, hasEnv := o.get("passwordEnv")
	file, hasFile := o.get("passwordFile")
	if hasEnv && hasFile {
		r.mistake(file, "", "is there beside passwordEnv", "keep one of them")
	}
	const instead = "set it before the gateway starts: it does not start without it"
	if hasEnv {
		if name, ok := r.text(env); ok {
			if !envName.MatchString(name) {
				r.mistake(env, "", "is not the name of an environment variable", "write letters, digits and _, such as REDIS_PASSWORD, never the password itself")
			} else {
				db.PasswordEnv = name
				if v, set := r.env(name); !set || v == "" {
					r.warn(env, "", "the environment variable "+cut(name, maxShown)+" is not set", instead)
				}
			}
		}
	}
	if hasFile {
		if path, ok := r.path(file); ok {
			db.PasswordFile = path
			if _, _, err := readFile(path, maxKey); err != nil {
				r.warn(file, "", "the file cannot be read, "+err.Error(), "put the password there before the gateway starts: it does not start without it")
			}
		}
	}
}

const redisInstead = "write redis://host:6379/0, or rediss:// for TLS"

// redisURL reads where the server is.
func (r *reader) redisURL(s spot, db *Redis) {
	text, ok := r.text(s)
	if !ok {
		return
	}
	if strings.Contains(text, "@") {
		r.mistake(s, "", "holds a user or a password", "write username, and passwordEnv or passwordFile, beside it")
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Opaque != "" || u.Hostname() == "" {
		r.mistake(s, "", "is not the URL of a server", redisInstead)
		return
	}
	if u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") {
		r.mistake(s, "", "has a query or a fragment", redisInstead)
		return
	}
	port := u.Port()
	if port == "" && !strings.HasSuffix(u.Host, ":") {
		port = redisPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		r.mistake(s, shown(text), "has no port from 1 to 65535", redisInstead)
		return
	}
	database := 0
	if path := strings.TrimPrefix(u.EscapedPath(), "/"); path != "" {
		n, err := strconv.Atoi(path)
		if err != nil || n < 0 || n > maxDatabase || strconv.Itoa(n) != path {
			r.mistake(s, shown(text), "has no number of a database in its path", redisInstead)
			return
		}
		database = n
	}
	db.URL, db.Database, db.TLS = text, database, u.Scheme == "rediss"
	db.Address = net.JoinHostPort(u.Hostname(), port)
	if !db.TLS && !isLoopbackHost(u.Hostname()) {
		r.warn(s, "", "answers, and the password if there is one, travel unencrypted", "write rediss://, or make sure that nobody else can reach the network between")
	}
}

// shared prints the state that replicas share.
func (p *printer) shared(s *Shared) {
	p.open("shared")
	p.open("redis")
	p.text("url", s.Redis.URL)
	for _, m := range []struct{ key, value string }{
		{"username", s.Redis.Username}, {"passwordEnv", s.Redis.PasswordEnv}, {"passwordFile", s.Redis.PasswordFile}, {"caFile", s.Redis.CAFile},
	} {
		if m.value != "" {
			p.text(m.key, m.value)
		}
	}
	p.duration("timeout", s.Redis.Timeout)
	p.text("prefix", s.Redis.Prefix)
	p.close()
	p.text("onFailure", s.OnFailure)
	p.close()
}
