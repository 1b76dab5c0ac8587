-- Declare, delete, reserve and inspect queues

-- KEYS epoch, q, log:h, log:b; ARGV epoch qid maker binding field value ...  Sets limits. Returns 1 if the queue is new, also
-- for a retry by the same maker, else 0; GONE if the queue was deleted and its name is about to be freed.
FUNCTIONS.declare = on_dataset(function(K, A)
  if call('HGET', K[2], 'deleted') then return 'GONE' end
  if call('HSETNX', K[2], 'id', A[2]) == 1 then call('HSET', K[2], 'maker', A[3], 'sampled', '0 ' .. num(now_ms())) end
  bind(K[3], K[4], A[2], A[4])
  local args = {}
  for i = 5, #A do args[#args + 1] = A[i] end
  if #args > 0 then call('HSET', K[2], unpack(args)) end
  call('HINCRBY', K[2], 'declared', 1)
  return call('HGET', K[2], 'maker') == A[3] and 1 or 0
end)

-- KEYS epoch, 8 of the queue, log:h, log:b, samples; ARGV epoch qid policy(Delete|DeleteIfEmpty) name samples-to-keep(0 = none)
-- [declared]. Returns {1, deleted messages} or {0, messages}, or CHANGED if the queue was declared more often, or is deleted.
FUNCTIONS.delete = on_dataset(function(K, A)
  local is_read, v = pcall(call, 'HMGET', K[3], 'id', 'len', 'declared')
  if not is_read then v = { A[2], A[3] == 'DeleteIfEmpty' and '1' or '0', A[6] } end  -- damaged: deleted unless only an empty queue may be
  if A[6] and (v[3] or '0') ~= A[6] then return 'CHANGED' end
  if v[1] ~= A[2] then return { 1, 0 } end
  local len = tonumber(v[2] or 0) or 0
  local has_letters, letters = pcall(call, 'XLEN', K[8])  -- damaged ones count as present
  if A[3] == 'DeleteIfEmpty' and (len > 0 or not has_letters or letters > 0) then
    return { 0, len }
  end
  pcall(function()   -- a damaged queue is deleted without a sample
    FUNCTIONS.sample_last(open_queue({ now = now_ms(), generation = '0' }, K, 2), K[12], A[4], A[5])
  end)
  call('UNLINK', K[2], K[3], K[4], K[5], K[6], K[7], K[8], K[9])
  bind(K[10], K[11], A[2], '')
  call('HSET', K[3], 'deleted', '1')    -- prevents a new queue with this id while the name is registered
  call('PEXPIRE', K[3], 86400000)
  return { 1, len }
end)

-- Fields of the queue hash for each kind of claim: holder, expiry, fencing token, length.
local CLAIMS = { reserve = { 'holder', 'until', 'fence', 'ttl' }, own = { 'own', 'own_until', 'own_fence', 'own_ttl' } }

-- Returns a claim: {fence, holder or nil, until}. For a claim from before a step back of the clock, it stores an earlier expiry,
-- as the holder may be dead.
FUNCTIONS.claim = function(key, kind, now)
  local names = CLAIMS[kind]
  local v = call('HMGET', key, unpack(names))
  local noted = tonumber(v[2] or 0)
  local till = v[4] and CLOCK.ends(noted, tonumber(v[4]), now) or noted
  local by = v[1] and v[1] ~= '' and till > now and v[1] or nil
  if by and till < noted then call('HSET', key, names[2], num(till)) end
  return { fence = tonumber(v[3] or 0), by = by, till = till }
end

-- Adjusts claims, and the time of the last release, after a step of the clock.
FUNCTIONS.heal_claims = function(key, now)
  for _, kind in ipairs({ 'reserve', 'own' }) do FUNCTIONS.claim(key, kind, now) end
  local freed = tonumber(call('HGET', key, 'freed') or 0)
  if CLOCK.happened(freed, now) < freed then call('HSET', key, 'freed', num(now)) end
end

local function take_claim(key, kind, held, holder, ttl, now)
  if not held.by then held.fence = held.fence + 1 end
  local names = CLAIMS[kind]
  call('HSET', key, names[1], holder, names[2], num(now + tonumber(ttl)), names[3], num(held.fence), names[4], ttl)
  return held.fence
end

local function reserved_by_other(held, now) return { 'RESERVED', held.by, num(held.till - now) } end

-- Whether a question of this age has been served since, by a holder whose name does not begin with `ours`. v = freed, freed_by,
-- served of the queue hash.
local function is_served(v, now, age, asker, ours)
  if not v[1] or v[3] ~= asker or tonumber(v[1]) < now - tonumber(age) then return false end
  return string.sub(v[2], 1, #ours) ~= ours
end

-- KEYS epoch, q; ARGV epoch holder ttl(ms) [age(ms) asker ours]. Returns the fencing token, or PAUSED, {RESERVED, holder,
-- ms left}, or {SERVED, holder}: a question of this age and asker was served by a holder whose name does not begin with `ours`.
-- Renewal keeps the token, also while the queue is paused; each new holder, and each that returns too late, gets a higher one.
FUNCTIONS.reserve = on_dataset(function(K, A)
  local v = call('HMGET', K[2], 'id', 'limits')
  if not v[1] then return 'GONE' end
  local now = now_ms()
  FUNCTIONS.heal_claims(K[2], now)
  local held = FUNCTIONS.claim(K[2], 'reserve', now)
  if limits_of(v[2]).paused and held.by ~= A[2] then return 'PAUSED' end
  if held.by and held.by ~= A[2] then return reserved_by_other(held, now) end
  if A[4] and not held.by then
    local freed = call('HMGET', K[2], 'freed', 'freed_by', 'served')
    if is_served(freed, now, A[4], A[5], A[6]) then return { 'SERVED', freed[2] } end
  end
  return take_claim(K[2], 'reserve', held, A[2], A[3], now)
end)

-- KEYS epoch, q; ARGV epoch holder fence asker. Releases the reservation if holder and fencing token match (0 = any token).
-- asker: whose question was served, '' = none.
FUNCTIONS.release = on_dataset(function(K, A)
  local v = call('HMGET', K[2], 'holder', 'fence')
  if v[1] ~= A[2] or A[3] ~= '0' and v[2] ~= A[3] then return 0 end
  call('HSET', K[2], 'holder', '', 'until', '0')
  if A[4] ~= '' then call('HSET', K[2], 'freed', num(now_ms()), 'freed_by', A[2], 'served', A[4]) end
  return 1
end)

-- KEYS epoch, q; ARGV epoch owner ttl(ms). Returns the fencing token, 0 if there is another owner. Renewal keeps the
-- token, and each new owner gets a higher one.
FUNCTIONS.own = on_dataset(function(K, A)
  if not call('HGET', K[2], 'id') then return 'GONE' end
  local now = now_ms()
  local held = FUNCTIONS.claim(K[2], 'own', now)
  if held.by and held.by ~= A[2] then return 0 end
  return take_claim(K[2], 'own', held, A[2], A[3], now)
end)

-- KEYS epoch, q; ARGV epoch owner fence.
FUNCTIONS.disown = on_dataset(function(K, A)
  local v = call('HMGET', K[2], 'own', 'own_fence')
  if v[1] ~= A[2] or v[2] ~= A[3] then return 0 end
  call('HSET', K[2], 'own', '', 'own_until', '0')
  return 1
end)

-- KEYS epoch, q; ARGV epoch text fence errors. Only the latest owner may set it, even after expiry. errors: failed attempts
-- since the last call, which those who track a message poll.
FUNCTIONS.set_condition = on_dataset(function(K, A)
  if call('HGET', K[2], 'own_fence') ~= A[3] then return 0 end
  if A[2] == '' then call('HDEL', K[2], 'condition') else call('HSET', K[2], 'condition', A[2]) end
  if A[4] and A[4] ~= '0' then call('HINCRBY', K[2], 'send_errors', A[4]) end
  return 1
end)

-- Whether there is no room for another message; leased messages cannot be evicted.
local function is_full(Q)
  local most, most_bytes, h = Q.limits.length, Q.limits.bytes, Q.h
  if Q.limits.evict then
    return most > 0 and h.leased >= most or most_bytes > 0 and h.bytes >= most_bytes and h.leased >= h.len
  end
  return most > 0 and h.len >= most or most_bytes > 0 and h.bytes >= most_bytes
end

-- KEYS 8 of the queue; ARGV holder. Returns 1, or why this holder cannot put a message now, as reserve does.
FUNCTIONS.available = function(K, A)
  begin()
  local C = { now = now_ms(), generation = '0' }
  local Q = open_queue(C, K, 1)
  if not Q then return 'GONE' end
  local reason = closed(Q, '?' .. A[1])
  if reason == 'RESERVED' then
    return reserved_by_other(FUNCTIONS.claim(K[2], 'reserve', C.now), C.now)
  end
  return reason or is_full(Q) and 'FULL' or 1
end

-- KEYS 8 of the queue; returns the queue hash, dead, returned, leases, time of the oldest put, time.
FUNCTIONS.stats = function(K)
  begin()
  if not call('HGET', K[2], 'id') then return 'GONE' end
  return { call('HGETALL', K[2]), call('XLEN', K[7]), call('ZCARD', K[4]), call('HLEN', K[3]),
    num(FUNCTIONS.oldest(K[1], K[8])), num(now_ms()) }
end

local function stats_of_one(K, first, A)
  local v = call('HMGET', K[first + 1], 'id', 'len', unpack(A))
  local oldest = v[1] and tonumber(v[2] or 0) > 0 and FUNCTIONS.oldest(K[first], K[first + 7]) or 0
  return v[1] and { { unpack(v, 3, 2 + #A) }, call('XLEN', K[first + 6]), call('ZCARD', K[first + 3]),
    call('HLEN', K[first + 2]), num(oldest) }
end

-- KEYS 8 of each queue; ARGV fields of their hashes. Returns the time, then for each queue those fields, dead, returned, lots,
-- time of the oldest put; false for a deleted queue, an error text for a damaged one.
FUNCTIONS.stats_of = function(K, A)
  begin()
  local out = { num(now_ms()) }
  for first = 1, #K, 8 do
    local ok, stats = pcall(stats_of_one, K, first, A)
    out[#out + 1] = ok and stats or not ok and tostring(type(stats) == 'table' and stats.err or stats)
  end
  return out
end

-- Moves the cursor in memory as if all messages up to this position had been taken.
local function skip_to(Q, position)
  local h = Q.h
  if position < (h.ci > 0 and h.ce * PER_ENTRY + h.ci or (h.ce + 1) * PER_ENTRY) then return end
  local index = position % PER_ENTRY
  local number = (position - index) / PER_ENTRY
  local e = load(Q, entry_id(Q, number))
  h.ce, h.ci = number, e and index + 1 < e.n and index + 1 or 0
end

-- KEYS 8 of the queue; ARGV count max-bytes [position]. Returns what a take would return, with lot '', without taking it; with
-- a position, only later messages: returned and new ones are each in the order of their positions.
FUNCTIONS.peek = function(K, A)
  begin()
  local C = { now = now_ms(), generation = '0' }
  local Q = open_queue(C, K, 1)
  if not Q then return 'GONE' end
  local out, want, read, after = {}, tonumber(A[1]), 0, tonumber(A[3] or '-1')
  for _, key in ipairs(call('ZRANGE', Q.r, '(' .. num(after), '+inf', 'BYSCORE', 'LIMIT', 0, want)) do
    if read >= tonumber(A[2]) then break end
    local position = tonumber(key)
    local index = position % PER_ENTRY
    local id = entry_id(Q, (position - index) / PER_ENTRY)
    local e = load(Q, id)
    local record = e and call('HGET', Q.f, key)
    if e then
      local blob = slice(e.b, index, 1)
      read = read + #blob
      add_delivery(out, '', { id = id, n = e.n, from = index, count = 1, blob = blob, t = e.t, o = e.o,
        h = record and history(record) or nil })
    end
  end
  local pieces = {}
  skip_to(Q, after)
  want = math.min(want, Q.h.len - Q.h.leased) - #out / 8
  if want > 0 and read < tonumber(A[2]) then gather_new(Q, want, tonumber(A[2]) - read, pieces) end
  for _, p in ipairs(pieces) do
    local record = p.c and call('HGET', Q.f, num(p.number * PER_ENTRY))
    if record then p.h = history(record) end
    add_delivery(out, '', p)
  end
  return out
end
