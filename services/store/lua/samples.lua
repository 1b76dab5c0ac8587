-- Write samples of the activity of edges and upkeep to a capped stream of a domain (docs/store.md, Samples)

local OCTETS_EACH = 4096   -- of the server's memory for each sample, so that samples take about 5 % of a small server
local DEPTH_MS = 10000     -- minimum interval of samples of one queue
local DEPTH_MOST_MS = 300000
local SPARE = 1000         -- samples above the bound, as the stream is trimmed by nodes
local COUNTERS = { 'added', 'delivered', 'acked', 'returned', 'fenced', 'dead', 'expired', 'duplicates', 'redriven',
  'purged', 'dead_trimmed', 'bytes_in', 'bytes_out' }
local NAMES = { dead = 'dead_all' }   -- names of fields that differ from the counter's

-- The number of samples to keep; 0: none may be written now.
local function bound(C, keep)
  keep = tonumber(keep)
  if keep == 0 or guard(C) then return 0 end
  return C.memory > 0 and math.max(1, math.min(keep, math.floor(C.memory / OCTETS_EACH))) or keep
end

-- KEYS epoch, samples; ARGV epoch keep, then of each sample: how many values, field value field value ...
-- Returns the server's time, ms; an error while the guard refuses writes, after which edges, also of older versions, retry later.
FUNCTIONS.sample = on_dataset(function(K, A)
  local C, i = { now = now_ms() }, 3
  if A[2] ~= '0' and guard(C) then return redis.error_reply(guard(C) .. ' no samples are written now') end
  local keep = num(bound(C, A[2]))
  while keep ~= '0' and A[i] do
    local last = i + tonumber(A[i])
    call('XADD', K[2], 'MAXLEN', '~', keep, '*', unpack(A, i + 1, last))
    i = last + 1
  end
  return num(C.now)
end)

-- The time of the oldest put; for messages moved to x only a part is examined if there are many.
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

-- Returns the fields and values of a queue's sample, a digest to detect changes, and whether any counter is above 0.
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

-- Returns time and digest of the last sample; '0' and the time of creation if there is none; nil for queues of older versions.
local function last_sample(Q) return string.match(call('HGET', Q.q, 'sampled') or '', '^(%d+) (%x+)$') end

-- Returns the fields and values of a depth sample.
local function sample_of(Q, name, at, last, before)
  local oldest = Q.h.len > 0 and FUNCTIONS.oldest(Q.s, Q.x) or 0
  local out = { 'v', '1', 'kind', 'depth', 'queue', name, 'oldest_ms', num(oldest > 0 and math.max(0, Q.C.now - oldest) or 0),
    unpack(at) }
  if last == '0' then   -- the counters started at 0 when the queue was created; unknown for queues of older versions
    out[#out + 1] = 'age_ms'
    out[#out + 1] = num(math.max(0, Q.C.now - tonumber(before)))
  end
  return out
end

-- Writes a sample of a queue that has changed since the last one, or whose last sample is old. `sampled` in its hash is
-- "<ms> <digest>", short enough to keep the hash compact; "0 <ms of creation>" before the first sample.
FUNCTIONS.sample_depth = function(Q, key, name, keep)
  if not keep or keep == '0' then return end   -- older edges pass none
  local last, before = last_sample(Q)
  local age = Q.C.now - tonumber(last or 0)
  if age >= 0 and age < DEPTH_MS then return end
  local at, digest = depth(Q)
  if digest == before and age >= 0 and age < DEPTH_MOST_MS then return end
  local kept = bound(Q.C, keep)
  if kept == 0 then return end
  call('XADD', key, 'MAXLEN', '~', num(kept), '*', unpack(sample_of(Q, name, at, last, before)))
  call('HSET', Q.q, 'sampled', num(Q.C.now) .. ' ' .. digest)
end

-- Writes the last sample of a queue before its deletion. The deleting process may not know how many samples are kept, so it neither
-- creates nor trims the stream.
FUNCTIONS.sample_last = function(Q, key, name, keep)
  if not keep or keep == '0' then return end   -- older programs pass none
  local last, before = last_sample(Q)
  local at, digest, is_used = depth(Q)
  if digest == before or last == '0' and not is_used then return end
  local kept = bound(Q.C, keep)
  if kept == 0 or call('XLEN', key) > kept + SPARE then return end
  call('XADD', key, 'NOMKSTREAM', '*', unpack(sample_of(Q, name, at, last, before)))
end
