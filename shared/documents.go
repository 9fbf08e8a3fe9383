package shared

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Documents are documents by name that all replicas read and may change, in one
// hash of the server. Beside it there are a log of the last changes, by which a
// replica finds out cheaply what is new, and an epoch: a word that is made with
// the first document and goes only when the server loses its data. It is safe
// for concurrent use.
type Documents struct {
	store            *Store
	epoch, log, hash string // keys
}

const (
	// MaxDocument bounds a document, in bytes.
	MaxDocument = 1 << 20
	// MaxDocuments bounds how many there are.
	MaxDocuments = 100_000
	// MaxBytes bounds them all together, in bytes. Who edits one sees to that: where
	// there is more, nobody who reads them all gets any.
	MaxBytes = 512 << 20
	// documentPiece is how many documents are read with one call. This and other
	// bounds stand in the scripts as well.
	documentPiece = 32
)

// DocumentState is what a replica has seen of the documents. The zero value is
// that of a server that has never had one, or has lost them all.
type DocumentState struct {
	// Epoch tells two generations of documents apart.
	Epoch string
	// Last is the last change in the epoch.
	Last string
}

// Edited is what came of a change.
type Edited uint8

// What may come of a change.
const (
	// EditFailed: it is not known whether it was made.
	EditFailed Edited = iota
	// EditDone: it was made.
	EditDone
	// EditConflict: the document was another one than the caller said.
	EditConflict
	// EditElsewhere: the epoch was another one than the caller said.
	EditElsewhere
	// EditFull: there is no room for another document.
	EditFull
	// EditStale: there is a change that the caller does not know.
	EditStale
)

// Documents returns the documents that are kept under a name.
func (s *Store) Documents(name string) *Documents {
	key := s.settings.Prefix + ":" + name
	return &Documents{store: s, epoch: key + ":epoch", log: key + ":log", hash: key}
}

// far is no deadline of a caller's: the store's own timeout holds.
func far() time.Time { return time.Now().Add(time.Hour) }

// Changes returns the state of now and the names of the documents that have
// been written or removed since known. whole is set where those are not known
// one by one: then everything is to be read. A name may come more than once. As
// all methods it gets nothing once ctx ends.
func (d *Documents) Changes(ctx context.Context, known DocumentState) (now DocumentState, names []string, whole bool, class Class) {
	r, class := d.store.callWithin(ctx, Read, d.store.scripts.changes, far(), []string{d.epoch, d.log}, []string{known.Epoch, known.Last})
	if class != OK {
		return known, nil, false, class
	}
	reply, err := r.AsStrSlice()
	if err != nil || len(reply) == 0 {
		return known, nil, false, d.malformed()
	}
	if now.Epoch = reply[0]; len(reply) > 1 {
		now.Last = reply[1]
	}
	if now.Epoch != known.Epoch {
		return now, nil, true, OK
	}
	for _, entry := range reply[1:] {
		if entry == known.Last {
			return now, names, false, OK
		}
		_, name, _ := strings.Cut(entry, " ")
		names = append(names, name)
	}
	// Nothing of it is known: too much has changed, or the log is another one.
	return now, nil, true, OK
}

// Get returns the documents of those names that there are. One that is too
// large is nil.
func (d *Documents) Get(ctx context.Context, names ...string) (map[string][]byte, Class) {
	found := make(map[string][]byte)
	for len(names) > 0 {
		part := names[:min(len(names), documentPiece)]
		names = names[len(part):]
		r, class := d.store.callWithin(ctx, Read, d.store.scripts.fetch, far(), []string{d.hash}, part)
		if class != OK {
			return nil, class
		}
		values, err := r.ToArray()
		if err != nil || len(values) != len(part) {
			return nil, d.malformed()
		}
		for i, name := range part {
			if values[i].IsNil() {
				continue
			}
			if found[name], err = document(values[i]); err != nil {
				return nil, d.malformed()
			}
		}
	}
	return found, OK
}

// All returns every document. One that is too large is nil, and one whose name
// is too long is left out. What changes meanwhile may be there or not: whoever
// has asked for Changes before asks again afterwards.
func (d *Documents) All(ctx context.Context) (map[string][]byte, Class) {
	found, size := make(map[string][]byte), 0
	for cursor := "0"; ; {
		r, class := d.store.callWithin(ctx, Read, d.store.scripts.scan, far(), []string{d.hash}, []string{cursor})
		if class != OK {
			return nil, class
		}
		values, err := r.ToArray()
		if err != nil || len(values)%2 == 0 {
			return nil, d.malformed()
		}
		if cursor, err = values[0].ToString(); err != nil {
			return nil, d.malformed()
		}
		for i := 1; i < len(values); i += 2 {
			name, err := values[i].ToString()
			if err != nil {
				return nil, d.malformed()
			}
			data, err := document(values[i+1])
			if err != nil {
				return nil, d.malformed()
			}
			if name == "" {
				continue
			}
			size += len(data) - len(found[name])
			found[name] = data
		}
		if len(found) > MaxDocuments || size > MaxBytes {
			return nil, d.malformed()
		}
		if cursor == "0" {
			return found, OK
		}
	}
}

// document returns what a script returned for a document, nil for one that is
// too large.
func document(v rueidis.RedisMessage) ([]byte, error) {
	if _, err := v.AsInt64(); v.IsInt64() && err == nil {
		return nil, nil
	}
	text, err := v.ToString()
	if err != nil {
		return nil, err
	}
	return []byte(text), nil
}

// Edit makes the document of a name new, if it is old and nothing at all has
// changed since known: what the caller has found out about all of them together
// holds then. An empty old means that there is none, and an empty new removes it.
// All replicas' edits are made one after the other. The first one makes the epoch.
func (d *Documents) Edit(ctx context.Context, known DocumentState, name string, old, new []byte) (Edited, Class) {
	r, class := d.store.callWithin(ctx, Write, d.store.scripts.edit, far(), []string{d.epoch, d.log, d.hash},
		[]string{known.Epoch, rand.Text(), rand.Text() + " " + name, name, string(old), string(new), known.Last})
	if class != OK {
		return EditFailed, class
	}
	switch what, err := r.ToString(); {
	case err == nil && what == "done":
		return EditDone, OK
	case err == nil && what == "conflict":
		return EditConflict, OK
	case err == nil && what == "elsewhere":
		return EditElsewhere, OK
	case err == nil && what == "stale":
		return EditStale, OK
	case err == nil && what == "full":
		return EditFull, OK
	default:
		return EditFailed, d.malformed()
	}
}

func (d *Documents) malformed() Class {
	d.store.Failures[Read][Malformed].Add(1)
	return Malformed
}

// changesScript returns the epoch, and behind it the log, the newest first, or of
// one that is known the newest alone. It holds the last 256 changes: whoever has missed more
// reads everything. What no replica has put there is cut off.
// KEYS: epoch, log. ARGV: the epoch and the newest entry that are known.
const changesScript = `
local epoch = string.sub(redis.call('GET', KEYS[1]) or '', 1, 128)
local newest = string.sub(redis.call('LINDEX', KEYS[2], 0) or '', 1, 128)
if epoch == ARGV[1] and newest == ARGV[2] then return {epoch, newest} end
local log = redis.call('LRANGE', KEYS[2], 0, 255)
for i, entry in ipairs(log) do log[i] = string.sub(entry, 1, 128) end
table.insert(log, 1, epoch)
return log
`

// fetchScript returns documents, and of one that is too large its length.
// KEYS: the hash. ARGV: names.
const fetchScript = `
local found = {}
for i, name in ipairs(ARGV) do
  if redis.call('HSTRLEN', KEYS[1], name) > 1048576 then
    found[i] = redis.call('HSTRLEN', KEYS[1], name)
  else
    found[i] = redis.call('HGET', KEYS[1], name)
  end
end
return found
`

// scanScript returns the next cursor and then names with documents, as
// fetchScript does. A name that is too long is empty, and so is its document.
// KEYS: the hash. ARGV: cursor.
const scanScript = `
local piece = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 32)
local found = {piece[1]}
for i = 1, #piece[2], 2 do
  local name, document = piece[2][i], piece[2][i + 1]
  if #name > 64 then name, document = '', '' end
  found[#found + 1] = name
  if #document > 1048576 then document = #document end
  found[#found + 1] = document
end
return found
`

// editScript changes one document.
// KEYS: epoch, log, the hash. ARGV: epoch that is known, one that may be made,
// entry of the log, name, old document, new document, the newest entry that is
// known.
const editScript = `
local epoch = redis.call('GET', KEYS[1]) or ''
if epoch ~= ARGV[1] then return 'elsewhere' end
if string.sub(redis.call('LINDEX', KEYS[2], 0) or '', 1, 128) ~= ARGV[7] then return 'stale' end
local old = redis.call('HGET', KEYS[3], ARGV[4]) or ''
if old ~= ARGV[5] then return 'conflict' end
if ARGV[6] == '' then
  redis.call('HDEL', KEYS[3], ARGV[4])
else
  if old == '' and redis.call('HLEN', KEYS[3]) >= 100000 then return 'full' end
  redis.call('HSET', KEYS[3], ARGV[4], ARGV[6])
end
if epoch == '' then
  redis.call('SET', KEYS[1], ARGV[2])
  redis.call('DEL', KEYS[2])
end
redis.call('LPUSH', KEYS[2], ARGV[3])
redis.call('LTRIM', KEYS[2], 0, 255)
return 'done'
`
