package shared

import (
	"crypto/fips140"

	"github.com/redis/rueidis"
)

// A question is a hash. f is the fingerprint of the message. While somebody
// evaluates it, t is the token of that lease, and w is there if anybody waits;
// later a is the answer. It expires with the lease, or with the answer.
//
// An answer that may not be remembered lies for a moment under a key of its own,
// with the leader's token in it: only who has waited for that leader knows it.

// beginScript joins a question.
// KEYS: the question, and where the leader that was waited for may have left an
// answer, if one was. ARGV: fingerprint, token, lease in ms.
const beginScript = `
if KEYS[2] then
  local passing = redis.call('GET', KEYS[2])
  if passing then return {'passing', passing} end
end
local q = redis.call('HMGET', KEYS[1], 'f', 't', 'a')
if not q[1] then
  if q[2] or q[3] then return {'odd', ''} end
  redis.call('HSET', KEYS[1], 'f', ARGV[1], 't', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return {'lead', ''}
end
if q[1] ~= ARGV[1] then return {'conflict', ''} end
if q[3] then return {'answer', q[3]} end
if not q[2] then return {'odd', ''} end
redis.call('HSET', KEYS[1], 'w', '1')
return {'wait', q[2]}
`

// finishScript ends a lease, if it is still the caller's.
// KEYS: the question, and where to leave an answer for those who wait. ARGV:
// token, answer, time in ms, whether the question remembers it.
const finishScript = `
if redis.call('HGET', KEYS[1], 't') ~= ARGV[1] then return 0 end
if ARGV[4] == '1' then
  redis.call('HSET', KEYS[1], 'a', ARGV[2])
  redis.call('HDEL', KEYS[1], 't', 'w')
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 1
end
if ARGV[2] ~= '' and redis.call('HGET', KEYS[1], 'w') then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
end
redis.call('DEL', KEYS[1])
return 1
`

// takeScript takes a token by the generic cell rate algorithm: the key holds
// when, by the server's clock in microseconds, the bucket will be full again. A
// time that no bucket of this size could have comes from a clock that was set
// back, or from other limits, and means an empty one.
// KEYS: the bucket. ARGV: microseconds for each token, size of the bucket.
// Returns the microseconds until there is a token, 0 if one was taken.
const takeScript = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local each, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local full = tonumber(redis.call('GET', KEYS[1]) or '') or now
full = math.min(math.max(full, now), now + each * size) + each
local wait = full - each * size - now
if wait > 0 then return math.ceil(wait) end
redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', string.format('%.0f', math.ceil((full - now) / 1000)))
return 0
`

// scripts are what the server is asked to run.
type scripts struct {
	begin, finish, take        *rueidis.Lua
	changes, fetch, scan, edit *rueidis.Lua // of documents
}

// newScripts returns the scripts. They are called by their SHA-1, as Redis names
// them, but where FIPS 140 is enforced, which has no SHA-1.
func newScripts() scripts {
	script := func(text string) *rueidis.Lua {
		if fips140.Enforced() {
			return rueidis.NewLuaScriptNoSha(text)
		}
		return rueidis.NewLuaScript(text)
	}
	return scripts{
		begin: script(beginScript), finish: script(finishScript), take: script(takeScript),
		changes: script(changesScript), fetch: script(fetchScript), scan: script(scanScript), edit: script(editScript),
	}
}
