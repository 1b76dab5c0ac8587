-- Samples: what edges and upkeep tell of their work, a capped stream of a domain (docs/store.md, Samples)

local OCTETS_EACH = 4096   -- of the server's memory for each sample that may be kept: of a small one they take some 5 %
local DEPTH_MS = 10000     -- between two looks at one queue, at least
local DEPTH_MOST_MS = 300000
local SPARE = 1000         -- there may be so many more than are kept, as they are trimmed a node at a time
local COUNTERS = { 'added', 'delivered', 'acked', 'returned', 'fenced', 'dead', 'expired', 'duplicates', 'redriven',
  'purged', 'dead_trimmed', 'bytes_in', 'bytes_out' }
local NAMES = { dead = 'dead_all' }   -- as a field of a sample, where that is another

-- How many may be kept, 0: nothing may be written now.
local function bound(C, keep)
  keep = tonumber(keep)
  if keep == 0 or guard(C) then return 0 end
  return C.memory > 0 and math.max(1, math.min(keep, math.floor(C.memory / OCTETS_EACH))) or keep
end

-- KEYS epoch, samples; ARGV epoch keep, then of each sample: how many values, field value field value ...
-- Answers the server's time, ms; where the guard lets nothing be written an error, as edges of before know it, too, by
-- which they are to tell it later.
FUNCTIONS.sample = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local C, i = { now = now_ms() }, 3
  if A[2] ~= '0' and guard(C) then return redis.error_reply(guard(C) .. ' no samples are written now') end
  local keep = num(bound(C, A[2]))
  while keep ~= '0' and A[i] do
    local last = i + tonumber(A[i])
    call('XADD', K[2], 'MAXLEN', '~', keep, '*', unpack(A, i + 1, last))
    i = last + 1
  end
  return num(C.now)
end

-- When the oldest message was put in: it may have been moved out of the stream (some of very many are looked at).
FUNCTIONS.oldest = function(stream, moved)
  local first = call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  local t = first and tonumber(fields_of(first[2]).t) or 0
  local kept = call('HSCAN', moved, '0', 'COUNT', STEP)[2]
  for i = 2, #kept, 2 do
    local theirs = tonumber(cmsgpack.unpack(kept[i]).t)
    if t == 0 or theirs < t then t = theirs end
  end
  return t
end

-- What is sampled of a queue, as fields and values; its digest, by which a change is seen; and whether it counted anything.
local function depth(Q)
  local at = { 'len', num(Q.h.len), 'leased', num(Q.h.leased), 'dead', num(call('XLEN', Q.d)), 'qid', Q.h.id }
  local counted, is_used = call('HMGET', Q.q, unpack(COUNTERS)), false
  for i, name in ipairs(COUNTERS) do
    at[#at + 1] = NAMES[name] or name
    at[#at + 1] = counted[i] or '0'
    is_used = is_used or at[#at] ~= '0'
  end
  return at, redis.sha1hex(table.concat(at, ' ')), is_used
end

-- When the last sample of it was written, and its digest; '0' and when it was made; nil of a queue of before.
local function last_look(Q) return string.match(call('HGET', Q.q, 'sampled') or '', '^(%d+) (%x+)$') end

-- Fields and values of a sample of its depth.
local function sample_of(Q, name, at, last, before)
  local oldest = Q.h.len > 0 and FUNCTIONS.oldest(Q.s, Q.x) or 0
  local out = { 'v', '1', 'kind', 'depth', 'queue', name, 'oldest_ms', num(oldest > 0 and math.max(0, Q.C.now - oldest) or 0),
    unpack(at) }
  if last == '0' then   -- its counters rose from 0 since it was made; of a queue of before nobody knows since when
    out[#out + 1] = 'age_ms'
    out[#out + 1] = num(math.max(0, Q.C.now - tonumber(before)))
  end
  return out
end

-- The store's word on a queue that has just been written back: if it has changed since the last time, or that is long
-- ago. `sampled` of its hash: "<ms> <digest>", short enough to leave the hash compact; "0 <ms when it was made>" until
-- there is one.
FUNCTIONS.sample_depth = function(Q, key, name, keep)
  if not keep or keep == '0' then return end   -- an edge of before says nothing of it
  local last, before = last_look(Q)
  local age = Q.C.now - tonumber(last or 0)
  if age >= 0 and age < DEPTH_MS then return end
  local at, digest = depth(Q)
  if digest == before and age >= 0 and age < DEPTH_MOST_MS then return end
  local kept = bound(Q.C, keep)
  if kept == 0 then return end
  call('XADD', key, 'MAXLEN', '~', num(kept), '*', unpack(sample_of(Q, name, at, last, before)))
  call('HSET', Q.q, 'sampled', num(Q.C.now) .. ' ' .. digest)
end

-- Its last word on a queue that is about to go: what it has counted since the last one. Whoever deletes may be no edge and
-- not know how many are kept, nor whether any are: where nothing is sampled it begins nothing, and it trims nothing.
FUNCTIONS.sample_last = function(Q, key, name, keep)
  if not keep or keep == '0' then return end   -- an edge or a tool of before says nothing of it
  local last, before = last_look(Q)
  local at, digest, is_used = depth(Q)
  if digest == before or last == '0' and not is_used then return end
  local kept = bound(Q.C, keep)
  if kept == 0 or call('XLEN', key) > kept + SPARE then return end
  call('XADD', key, 'NOMKSTREAM', '*', unpack(sample_of(Q, name, at, last, before)))
end
