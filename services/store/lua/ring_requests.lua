-- Execute the requests of a ring once for each id, and repeat the reply for a repeated request (ring.md 5.4)

-- The key of an id has "push done", "push <refusal>", "pull empty", "pull LARGE", "pull settled" or
-- "pull held <qid> <lot> <entry> <index>", never a body.

local EMPTY_MS = 600000   -- for pulls without effect; forgetting one early costs at most an unused lease
local PASSING = { MEMORY = true, EVICTS = true, UNKEPT = true } -- the store accepts no data: the refusal is not stored
local LENGTH = { push = 4, pull = 1, done = 2 }

-- Returns the stored result of an id, or nil, and whether it is of another kind of operation.
local function before(key, kind)
  local text = call('GET', key)
  if not text then return nil end
  local its, rest = string.match(text, '^(%l+) (.*)$')
  return rest, its ~= kind
end

local function keep(key, text, keep_ms) call('SET', key, text, 'PX', keep_ms) end

-- A[i] = origin, n, bytes, record. Returns as commit.
local function push(Q, key, keep_ms, stored, A, i)
  if stored then
    if Q then count(Q, 'duplicates', 1) end
    return stored == 'done' and { 'AGAIN' } or refuse(stored, 0)
  end
  if not Q then return refuse('GONE', 0) end
  local done = publish(Q, A[i], '', A, i + 1, 1)
  local why = type(done) == 'table' and done[2] or nil
  if not PASSING[why or ''] then keep(key, 'push ' .. (why or 'done'), keep_ms) end
  return why and refuse(why, 0) or { 'DONE' }
end

-- Opens a lot of any session, as repeats and settlements may reach any process; close_lot closes it.
local function open_lot(Q, number)
  local text = call('HGET', Q.l, number)
  if not Q.lots then Q.lots = {} end
  Q.lots[number] = text and parse_lot(text) or false
  return Q.lots[number]
end

local function close_lot(Q, number) Q.lots[number] = nil end

-- Parses the lease of a pull, {qid, lot, entry, index}; nil if there is none, or it is settled.
local function lease_of(stored)
  local qid, lot, entry, index = string.match(stored or '', '^held (%S+) (%d+) (%S+) (%d+)$')
  return qid and { qid = qid, lot = lot, entry = entry, index = tonumber(index) } or nil
end

-- Calls f(lot, e) with lot and entry of the leased message; returns nil if the lease has ended.
local function with_leased(Q, lease, f)
  if not Q or Q.h.id ~= lease.qid then return nil end
  local lot = open_lot(Q, lease.lot)
  local e = lot and holds(Q, lease.lot, lease.entry, shl(1, lease.index)) and load(Q, lease.entry)
  local answer = e and f(lot, e) or nil
  close_lot(Q, lease.lot)
  return answer
end

-- Returns the message again: {verdict, eight values as in the reply of take}, or EXPIRED.
local function deliver_again(Q, lease, verdict)
  return with_leased(Q, lease, function(_, e)
    local record = call('HGET', Q.f, num(number_of(lease.entry) * PER_ENTRY + lease.index))
    local out = { verdict }
    add_delivery(out, lease.lot, { id = lease.entry, n = e.n, from = lease.index, count = 1, t = e.t, o = e.o,
      blob = slice(e.b, lease.index, 1), h = record and history(record) })
    return out
  end) or { 'EXPIRED' }
end

local function pulled_before(q, Q, stored)
  if Q then count(Q, 'duplicates', 1) end
  if stored == 'empty' then return { 'EMPTY' } end
  if stored == 'settled' then return { 'EXPIRED' } end
  local lease = lease_of(stored)
  if not lease then return refuse(stored, 0) end
  return deliver_again(Q, lease, 'AGAIN'), { 'pull', q, lease, 'AGAIN' }
end

-- Returns a message to its place, and undoes the lease, including its counters.
local function put_back(Q, out)
  returns(Q, { out[2], out[3], num(out[5]), 'front', '0', '' }, 1, 1)
  count(Q, 'delivered', -1)
  count(Q, 'returned', -1)
  table.remove(Q.C.held)
end

-- Returns {DONE, eight values as in the reply of take}, {AGAIN, the same} for a repeat, {EMPTY}, {EXPIRED}: the lease has ended,
-- {MORE}: repeat the call, as all candidates had expired, or {FAILED, why, 0}.
local function pull(q, Q, key, keep_ms, stored, largest)
  if stored then return pulled_before(q, Q, stored) end
  if not Q then return refuse('GONE', 0) end
  local out = take(Q, 1, 1)
  if #out == 1 then
    if out[1] == 1 then return { 'MORE' } end
    keep(key, 'pull empty', num(math.min(keep_ms, EMPTY_MS)))
    return { 'EMPTY' }
  end
  if body_length(out[7]) > largest then
    put_back(Q, out)
    keep(key, 'pull LARGE', keep_ms)
    return refuse('LARGE', 0)
  end
  local lease = { qid = Q.h.id, lot = out[2], entry = out[3], index = out[5] }
  keep(key, table.concat({ 'pull held', lease.qid, lease.lot, lease.entry, num(lease.index) }, ' '), keep_ms)
  out[1] = 'DONE'
  return out, { 'pull', q, lease, 'DONE' }
end

local function settle(Q, key, lease, lots)
  return with_leased(Q, lease, function(lot, e)
    if lot.session ~= Q.C.session and not lots[lot.session] then return { 'HELD', lot.session } end
    ack(Q, lease.lot, lease.entry, e.n, shl(1, lease.index), body_bytes(slice(e.b, lease.index, 1), 1))
    save_lots(Q)
    if lot.session ~= Q.C.session then call('SREM', lots[lot.session], Q.h.id .. ' ' .. lease.lot) end
    call('SET', key, 'pull settled', 'KEEPTTL')
    return { 'DONE' }
  end) or { 'EXPIRED' }
end

-- Settles the message that a pull leased. Returns {DONE}, {AGAIN}, {EXPIRED}: it was returned, {UNKNOWN}: the id leased nothing, or
-- {HELD, session}: repeat the call with that session's lots.
local function done(Q, key, stored, lots)
  if stored == 'settled' then return { 'AGAIN' } end
  local lease = lease_of(stored)
  return lease and settle(Q, key, lease, lots) or { 'UNKNOWN' }
end

-- A[i] = key keep-ms queue kind, then of push: origin n bytes record; pull: largest body; done: session and the key of its
-- lots, or '' and 0.
FUNCTIONS.request = function(C, queues, A, i)
  local key, keep_ms, q, kind = C.keys[tonumber(A[i])], A[i + 1], tonumber(A[i + 2]), A[i + 3]
  local Q = queues(q)
  local stored, differs = before(key, kind == 'push' and 'push' or 'pull')
  if kind == 'done' then return done(Q, key, not differs and stored, { [A[i + 4]] = C.keys[tonumber(A[i + 5])] }) end
  if differs then return refuse('DIFFERS', 0) end
  if kind == 'push' then return push(Q, key, keep_ms, stored, A, i + 4) end
  return pull(q, Q, key, keep_ms, stored, tonumber(A[i + 4]))
end

FUNCTIONS.after_request = function(A, i) return i + 4 + LENGTH[A[i + 3]] end

-- Repeats the reply of a pull whose answer was lost: kept = {pull, queue, lease, verdict}.
FUNCTIONS.pull_again = function(Q, kept) return deliver_again(Q, kept[3], kept[4]) end
