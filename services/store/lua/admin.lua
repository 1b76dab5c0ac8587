-- Queues: declare, delete, reserve, look

-- KEYS epoch, q, log:h, log:b; ARGV epoch qid maker binding field value ...  Sets limits; answers 1 if the queue is new, also when the same
-- maker asks again because the answer was lost; GONE where a queue of this id was deleted: its name is about to go.
FUNCTIONS.declare = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  if call('HGET', K[2], 'deleted') then return 'GONE' end
  if call('HSETNX', K[2], 'id', A[2]) == 1 then call('HSET', K[2], 'maker', A[3], 'sampled', '0 ' .. num(now_ms())) end
  bind(K[3], K[4], A[2], A[4])
  local args = {}
  for i = 5, #A do args[#args + 1] = A[i] end
  if #args > 0 then call('HSET', K[2], unpack(args)) end
  call('HINCRBY', K[2], 'declared', 1)
  return call('HGET', K[2], 'maker') == A[3] and 1 or 0
end

-- KEYS epoch, 8 of the queue, log:h, log:b, samples; ARGV epoch qid policy(Delete|DeleteIfEmpty) name samples-to-keep(0 = none)
-- [declared]. Answers {1, lost} or {0, messages}, or CHANGED where it was declared more often than that, or is gone.
FUNCTIONS.delete = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local is_read, v = pcall(call, 'HMGET', K[3], 'id', 'len', 'declared')
  if not is_read then v = { A[2], A[3] == 'DeleteIfEmpty' and '1' or '0', A[6] } end  -- spoilt: goes where somebody says so
  if A[6] and (v[3] or '0') ~= A[6] then return 'CHANGED' end
  if v[1] ~= A[2] then return { 1, 0 } end
  local len = tonumber(v[2] or 0) or 0
  local has_letters, letters = pcall(call, 'XLEN', K[8])  -- spoilt ones may be somebody's
  if A[3] == 'DeleteIfEmpty' and (len > 0 or not has_letters or letters > 0) then
    return { 0, len }
  end
  pcall(function()   -- what is spoilt goes all the same, and silently
    FUNCTIONS.sample_last(open_queue({ now = now_ms(), generation = '0' }, K, 2), K[12], A[4], A[5])
  end)
  call('UNLINK', K[2], K[3], K[4], K[5], K[6], K[7], K[8], K[9])
  bind(K[10], K[11], A[2], '')
  call('HSET', K[3], 'deleted', '1')    -- no queue comes back under this id while its name is still registered
  call('PEXPIRE', K[3], 86400000)
  return { 1, len }
end

-- Fields of the queue hash that say of a claim by whom it is held, until when, its fence number and its length.
local CLAIMS = { reserve = { 'holder', 'until', 'fence', 'ttl' }, own = { 'own', 'own_until', 'own_fence', 'own_ttl' } }

-- A claim as it is now: {fence, its holder or nil, until}. For one that was noted before the clock was stepped back, each look
-- writes the nearer end down: its holder may be dead.
FUNCTIONS.claim = function(key, kind, now)
  local names = CLAIMS[kind]
  local v = call('HMGET', key, unpack(names))
  local noted = tonumber(v[2] or 0)
  local till = v[4] and CLOCK.ends(noted, tonumber(v[4]), now) or noted
  local by = v[1] and v[1] ~= '' and till > now and v[1] or nil
  if by and till < noted then call('HSET', key, names[2], num(till)) end
  return { fence = tonumber(v[3] or 0), by = by, till = till }
end

-- Claims, and the time of the last release, that were noted before the clock was stepped.
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

-- Whether what was asked so long ago has been served since, by others than those whose names begin so. v = freed, freed_by,
-- served of the queue hash.
local function is_served(v, now, age, asker, ours)
  if not v[1] or v[3] ~= asker or tonumber(v[1]) < now - tonumber(age) then return false end
  return string.sub(v[2], 1, #ours) ~= ours
end

-- KEYS epoch, q; ARGV epoch holder ttl(ms) [age(ms) asker ours]. Answers the fence number, or PAUSED, or {RESERVED, by whom,
-- for how many ms}, or {SERVED, by whom}: an asker whose question is as old has had an answer, by somebody whose name does not
-- begin with `ours`. Renewing keeps the fence number, also while the queue is paused; each new holder, and each that comes
-- back too late, has one that is higher.
FUNCTIONS.reserve = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
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
end

-- KEYS epoch, q; ARGV epoch holder fence asker. Only the holder of that fence number frees it, who had it for this asker
-- ('' = for nobody's question); with the fence 0, whichever number it got.
FUNCTIONS.release = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local v = call('HMGET', K[2], 'holder', 'fence')
  if v[1] ~= A[2] or A[3] ~= '0' and v[2] ~= A[3] then return 0 end
  call('HSET', K[2], 'holder', '', 'until', '0')
  if A[4] ~= '' then call('HSET', K[2], 'freed', num(now_ms()), 'freed_by', A[2], 'served', A[4]) end
  return 1
end

-- KEYS epoch, q; ARGV epoch owner ttl(ms). Answers the fence number, 0 where somebody else owns it. As with reserve, it
-- is kept by renewing and grows with each new owner.
FUNCTIONS.own = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  if not call('HGET', K[2], 'id') then return 'GONE' end
  local now = now_ms()
  local held = FUNCTIONS.claim(K[2], 'own', now)
  if held.by and held.by ~= A[2] then return 0 end
  return take_claim(K[2], 'own', held, A[2], A[3], now)
end

-- KEYS epoch, q; ARGV epoch owner fence.
FUNCTIONS.disown = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local v = call('HMGET', K[2], 'own', 'own_fence')
  if v[1] ~= A[2] or v[2] ~= A[3] then return 0 end
  call('HSET', K[2], 'own', '', 'own_until', '0')
  return 1
end

-- KEYS epoch, q; ARGV epoch text fence errors. Only the latest owner says it, also after its time. errors: how many attempts
-- have failed since it last said something; whoever waits for a message looks at their number.
FUNCTIONS.set_condition = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  if call('HGET', K[2], 'own_fence') ~= A[3] then return 0 end
  if A[2] == '' then call('HDEL', K[2], 'condition') else call('HSET', K[2], 'condition', A[2]) end
  if A[4] and A[4] ~= '0' then call('HINCRBY', K[2], 'send_errors', A[4]) end
  return 1
end

-- Whether one message more would find no room: the oldest make way only for as much as is not leased.
local function is_full(Q)
  local most, most_bytes, h = Q.limits.length, Q.limits.bytes, Q.h
  if Q.limits.evict then
    return most > 0 and h.leased >= most or most_bytes > 0 and h.bytes >= most_bytes and h.leased >= h.len
  end
  return most > 0 and h.len >= most or most_bytes > 0 and h.bytes >= most_bytes
end

-- KEYS 8 of the queue; ARGV holder. Answers 1, or why this holder could not put a message in now, as reserve does.
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

-- KEYS 8 of the queue; answers the queue hash, then dead, returned, oldest time.
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

-- KEYS 8 of each queue; ARGV fields of their hashes. Answers the time, then of each queue those fields, dead, returned, lots,
-- oldest time; of one that is gone, false; of one that is damaged, why it cannot be read: it hides no other.
FUNCTIONS.stats_of = function(K, A)
  begin()
  local out = { num(now_ms()) }
  for first = 1, #K, 8 do
    local ok, told = pcall(stats_of_one, K, first, A)
    out[#out + 1] = ok and told or not ok and tostring(type(told) == 'table' and told.err or told)
  end
  return out
end

-- As if all up to this position had been taken: what is new begins behind it. Nothing is written.
local function look_behind(Q, position)
  local h = Q.h
  if position < (h.ci > 0 and h.ce * PER_ENTRY + h.ci or (h.ce + 1) * PER_ENTRY) then return end
  local index = position % PER_ENTRY
  local number = (position - index) / PER_ENTRY
  local e = load(Q, entry_id(Q, number))
  h.ce, h.ci = number, e and index + 1 < e.n and index + 1 or 0
end

-- KEYS 8 of the queue; ARGV count max-bytes [position]. What a take would give, without taking it: same shape, lot ''; with a
-- position, only what is behind it, as both what was returned and what is new are in the order of their positions.
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
      tell(out, '', { id = id, n = e.n, from = index, count = 1, blob = blob, t = e.t, o = e.o,
        h = record and history(record) or nil })
    end
  end
  local pieces = {}
  look_behind(Q, after)
  want = math.min(want, Q.h.len - Q.h.leased) - #out / 8
  if want > 0 and read < tonumber(A[2]) then gather_new(Q, want, tonumber(A[2]) - read, pieces) end
  for _, p in ipairs(pieces) do
    local record = p.c and call('HGET', Q.f, num(p.number * PER_ENTRY))
    if record then p.h = history(record) end
    tell(out, '', p)
  end
  return out
end
