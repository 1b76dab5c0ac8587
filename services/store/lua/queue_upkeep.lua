-- Upkeep of one queue

local function expire_front(Q)
  if Q.limits.ttl == 0 then return end
  local moved = 0
  while moved < STEP do
    local first = call('ZRANGE', Q.r, 0, 0)[1]
    local id = first and entry_id(Q, math.floor(tonumber(first) / PER_ENTRY))
    if not id then
      local start = Q.h.ce == 0 and '-' or (Q.h.ci > 0 and entry_id(Q, Q.h.ce) or '(' .. entry_id(Q, Q.h.ce))
      local e = call('XRANGE', Q.s, start, '+', 'COUNT', 1)[1]
      id = e and e[1]
    end
    local e = id and load(Q, id)
    if not e or tonumber(e.t) + Q.limits.ttl > Q.C.now then return end
    local back, new, got = gather(Q, PER_ENTRY, 1)
    local alive, fresh = expire(Q, back), expire(Q, new)
    for _, p in ipairs(fresh) do alive[#alive + 1] = p end
    for _, p in ipairs(alive) do                     -- gathered with an expired one: returned to its place
      for j = 0, p.count - 1 do
        local key = p.key or num(p.number * PER_ENTRY + p.from + j)
        local t = num(Q.C.now)
        call('HSET', Q.f, key, p.h and history_text('0', p.h) or ('0 0 0 ' .. t .. ' ' .. t .. ' '))
        call('ZADD', Q.r, key, key)
      end
    end
    moved = moved + got
    if got == 0 or #alive > 0 then return end
  end
end

-- Moves some old, mostly settled entries to x without settled bodies, as one unsettled message would keep up to 4 KiB. The next
-- call continues.
local function move_stragglers(Q, older_ms)
  if Q.h.rc_at > 0 then return end
  local next_at, found = unpack(call('HSCAN', Q.m, call('HGET', Q.q, 'scan') or '0', 'COUNT', 200))
  call('HSET', Q.q, 'scan', next_at)
  for i = 1, #found, 2 do
    local entry, mask = found[i], tonumber(found[i + 1])
    local raw = call('XRANGE', Q.s, entry, entry)[1]
    local e = raw and fields_of(raw[2])
    local before_cursor = number_of(entry) < Q.h.ce or (number_of(entry) == Q.h.ce and Q.h.ci == 0)
    if e and before_cursor and tonumber(e.t) + older_ms < Q.C.now and popcount(mask) * 2 >= e.n and e.n > 1 then
      local kept = {}
      for j = 0, e.n - 1 do
        kept[j + 1] = band(mask, shl(1, j)) == 0 and slice(e.b, j, 1) or '\0\0\0\0'
      end
      call('HSET', Q.x, entry, cmsgpack.pack({ n = e.n, t = e.t, o = e.o, c = e.c, r = e.r, b = table.concat(kept) }))
      call('XDEL', Q.s, entry)
      add(Q, 'moved', 1)
      call('HSET', Q.q, 'moved', num(Q.h.moved))   -- at once, so that a later error does not hide the entries in x
    end
  end
end

local function count_live(e, mask)
  local n, bytes, p = 0, 0, 1
  for j = 0, e.n - 1 do
    local q = skip(e.b, p, 1)
    if band(mask, shl(1, j)) == 0 then n, bytes = n + 1, bytes + q - p - 4 end
    p = q
  end
  return n, bytes
end

local function count_moved(Q)
  local all, n, bytes = call('HGETALL', Q.x), 0, 0
  for i = 1, #all, 2 do
    local m, b = count_live(cmsgpack.unpack(all[i + 1]), mask_of(Q, all[i]))
    n, bytes = n + m, bytes + b
  end
  return n, bytes
end

-- Counts the stream in steps, while the queue is in use; `leave` subtracts counted messages that leave meanwhile. Returns nil until
-- a pass is complete, then corrects the counters and returns {counted, bytes, leased in lots, len, bytes, leased}.
local function reconcile(Q, step)
  local start, n, bytes = '(' .. entry_id(Q, Q.h.rc_at), nil, nil
  if Q.h.rc_at == 0 then
    start, n, bytes = '-', count_moved(Q)
  else
    local v = call('HMGET', Q.q, 'rc_len', 'rc_bytes')
    n, bytes = tonumber(v[1]), tonumber(v[2])
  end
  local entries = call('XRANGE', Q.s, start, '+', 'COUNT', step)
  for i = 1, #entries do
    local m, b = count_live(fields_of(entries[i][2]), mask_of(Q, entries[i][1]))
    n, bytes = n + m, bytes + b
    set(Q, 'rc_at', number_of(entries[i][1]))
  end
  if #entries == step then
    call('HSET', Q.q, 'rc_len', num(n), 'rc_bytes', num(bytes))
    return
  end
  local leased = 0
  for _, text in ipairs(call('HVALS', Q.l)) do leased = leased + parse_lot(text).left end
  local out = { n, bytes, leased, Q.h.len, Q.h.bytes, Q.h.leased }
  set(Q, 'len', n)
  set(Q, 'bytes', bytes)
  set(Q, 'leased', leased)
  set(Q, 'rc_at', 0)
  return out
end

-- KEYS epoch, 8 of the queue, samples; ARGV epoch straggler-age(ms) reconcile-step dead-retention(ms, 0 = for ever) name
-- samples-to-keep(0 = none).
FUNCTIONS.upkeep = on_dataset(function(K, A)
  local C = { held = {}, freed = {}, session = '', now = now_ms(), generation = generation_of(A[1]) }
  local Q = open_queue(C, K, 2)
  if not Q then return 'GONE' end
  FUNCTIONS.heal_claims(K[3], C.now)
  expire_front(Q)
  move_stragglers(Q, tonumber(A[2]))
  if tonumber(A[4]) > 0 then count(Q, 'dead_trimmed', call('XTRIM', Q.d, 'MINID', num(math.max(0, C.now - tonumber(A[4]))))) end
  local counted = reconcile(Q, tonumber(A[3]))
  close_queue(Q)
  FUNCTIONS.sample_depth(Q, K[10], A[5], A[6])
  return counted or {}
end)
