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

// takeScript admits a request, or nobody: then it takes nothing.
//
// The first key is a token bucket, by the generic cell rate algorithm: when, by
// the server's clock in microseconds, it will be full again. A time that no
// bucket of this size could have comes from a clock that was set back, or from
// other limits, and means an empty one.
//
// The second is what is counted: the number of a UTC day and its count, that of a
// UTC month and its count, and the last ids of debts that were added, 64 at most.
// Days count from 1970, and so do months: January 1970 is 1. As in package tenant
// a clock that is set back a little counts in the next period still, and one that
// is set back further begins anew. A server that has lost its data is told by the
// replicas what they know. It expires 32 days after it was last counted in.
//
// KEYS: the bucket, and the counts unless nothing is counted. ARGV: microseconds
// for each token or 0 for no bucket, size of the bucket; quota of a day and of a
// month, 0 for none; what the replica knows; the id of a debt or "", and the debt,
// both as tally has them.
// Returns 0, or 1 for over the rate or 2 for over a quota, with the microseconds
// until that ends; then, unless it is 1 or nothing is counted, the counts.
const takeScript = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local each, size, full = tonumber(ARGV[1]), tonumber(ARGV[2]), nil
if each > 0 then
  full = tonumber(redis.call('GET', KEYS[1]) or '') or now
  full = math.min(math.max(full, now), now + each * size) + each
  local wait = full - each * size - now
  if wait > 0 then return {1, math.ceil(wait)} end
end
local found, reply = 0, {0, 0}
if KEYS[2] then
  local floor = math.floor
  local function monthOf(day)
    local days = day - 11017 -- since 1 March 2000
    local years = floor((days - floor(days / 1460) + floor(days / 36524)) / 365)
    local rest = days - 365 * years - floor(years / 4) + floor(years / 100)
    return (years + 30) * 12 + floor((5 * rest + 2) / 153) + 3
  end
  local function count(period, was, n, known, least)
    was, known = tonumber(was), tonumber(known)
    if was == period + 1 then period = was end
    if was ~= period then n = 0 end
    if known == period then n = math.max(n, least) end
    return period, tonumber(n)
  end
  local today = floor(t[1] / 86400)
  local a, b, c, d, ids = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) (%d+) (%d+) (%d+)(.*)$')
  local day, inDay = count(today, a, b, ARGV[5], ARGV[6])
  local month, inMonth = count(monthOf(today), c, d, ARGV[7], ARGV[8])
  ids = ids or ''
  if ARGV[9] ~= '' and not string.find(ids, ARGV[9], 1, true) then
    if tonumber(ARGV[10]) >= day then inDay = inDay + ARGV[11] end
    if tonumber(ARGV[12]) >= month then inMonth = inMonth + ARGV[13] end
    ids = string.sub(' ' .. ARGV[9] .. ids, 1, 64 * 17)
  end
  local dayQuota, monthQuota, rest, wait = tonumber(ARGV[3]), tonumber(ARGV[4]), 86400000000 - now % 86400000000, 0
  if dayQuota > 0 and inDay >= dayQuota then
    found, wait = 2, rest
  elseif monthQuota > 0 and inMonth >= monthQuota then
    found, wait = 2, monthOf(today + 1) ~= month and rest or 86400000000
  else
    inDay, inMonth = inDay + 1, inMonth + 1
  end
  redis.call('SET', KEYS[2], string.format('%.0f %.0f %.0f %.0f', day, inDay, month, inMonth) .. ids, 'PX', '2764800000')
  reply = {found, wait, day, inDay, month, inMonth}
end
if full and found == 0 then
  redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', string.format('%.0f', math.ceil((full - now) / 1000)))
end
return reply
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
