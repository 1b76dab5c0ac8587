-- The combined call: many operations of one session

-- KEYS: epoch ses lane lots log:s log:h log:held, 8 for each queue, then one for each commit, journal, fate or request, and lots of
-- other sessions.
-- ARGV: epoch session sequence deadline(ms, 0 = none) wake-channel queues, then operations:
--   P queue origin holder k (n bytes records)*k, stops at the first record without room    O the same, in order:
--   stops at the first refused record, and refuses later O operations of this holder in the call
--   A queue k (lot entry n mask bytes)*k   T queue want max-bytes
--   R queue k (lot entry index place failed error)*k   J queue k (lot entry index reason error)*k   C queue
--   N queue k (lot entry index note)*k
--   B queue origin k (reason error record)*k       X tx keep-ms digest parts (queue k origin holder acks*k k' publishes*k')*
--   W fate-key keep-ms queue origin n bytes record
--   U journal queue number origin reason error n bytes record
--   Q request keep-ms queue (push origin n bytes record | pull largest | done session lots)
--   L bindings origin k (n lines c (queue record)*c)*k   H   K, the server's time (ms), also of a call that is repeated
local FIRST = 8

-- The remaining entries of a lot's range in order, including those moved to x (queue_upkeep.lua).
local function range_of(Q, lot)
  local out = {}
  for _, v in ipairs(call('XRANGE', Q.s, entry_id(Q, lot.e1), entry_id(Q, lot.e2))) do
    out[#out + 1] = { id = v[1], number = number_of(v[1]), e = fields_of(v[2]) }
  end
  if Q.h.moved == 0 then return out end
  for _, id in ipairs(call('HKEYS', Q.x)) do
    local number = number_of(id)
    if number >= lot.e1 and number <= lot.e2 then
      out[#out + 1] = { id = id, number = number, e = cmsgpack.unpack(call('HGET', Q.x, id)) }
    end
  end
  table.sort(out, function(a, b) return a.number < b.number end)
  return out
end

local function rebuild(Q, number)
  local out, lot = {}, lot_of(Q, number)
  if not lot then return out end
  if lot.kind == 'R' then
    for key in string.gmatch(lot.rest, '%d+') do
      local position = tonumber(key)
      local index = position % PER_ENTRY
      local id = entry_id(Q, (position - index) / PER_ENTRY)
      local e, record = load(Q, id), call('HGET', Q.f, key)
      if e and record then
        add_delivery(out, number, { id = id, n = e.n, from = index, count = 1, blob = slice(e.b, index, 1), t = e.t, o = e.o,
          h = history(record) })
      end
    end
    return out
  end
  for _, found in ipairs(range_of(Q, lot)) do
    local e, from, to = found.e, 0, found.e.n
    if found.number == lot.e1 then from = lot.i1 end
    if found.number == lot.e2 then to = lot.i2 end
    local h
    if e.c then
      local record = call('HGET', Q.f, num(found.number * PER_ENTRY))
      h = record and history(record)
    end
    add_delivery(out, number, { id = found.id, n = e.n, from = from, count = to - from, t = e.t, o = e.o, h = h,
      blob = (from > 0 or to < e.n) and slice(e.b, from, to - from) or e.b })
  end
  return out
end

-- Repeats the stored replies; takes and pulls are stored without bodies, which are read again.
local function replay(queues, A, kept)
  for k, r in ipairs(kept) do
    if type(r) == 'table' and r[1] == 'pull' then
      kept[k] = FUNCTIONS.pull_again(queues(r[2]), r)
    elseif type(r) == 'table' and r[1] == 'take' then
      local Q, out = queues(r[2]), { r[3] }
      for j = 4, #r do
        for _, v in ipairs(Q and rebuild(Q, r[j]) or {}) do out[#out + 1] = v end
      end
      for j = 1, math.max(#r, #out) do r[j] = out[j] end
    end
  end
  for q = 0, tonumber(A[6]) - 1 do
    if queues(q) then count(queues(q), 'duplicates', 1) close_queue(queues(q)) end
  end
  return kept
end

local OPS = {}   -- each returns its reply, and the value to store for repeats if that differs
OPS.P = function(C, queues, A, i)
  local Q = queues(tonumber(A[i]))
  return Q and publish(Q, A[i + 1], A[i + 2], A, i + 4, tonumber(A[i + 3])) or { 0, 'GONE' }
end
OPS.O = function(C, queues, A, i)
  local Q, holder = queues(tonumber(A[i])), A[i + 2]
  if C.stopped[holder] then return { 0, 'BEHIND' } end
  C.stopped[holder] = true   -- unless all of it is put; an error also stops the holder
  local done = Q and publish(Q, A[i + 1], holder, A, i + 4, tonumber(A[i + 3]), true) or { 0, 'GONE' }
  if type(done) == 'number' then C.stopped[holder] = nil end
  return done
end
OPS.A = function(C, queues, A, i)
  local Q = queues(tonumber(A[i]))
  return Q and acks(Q, A, i + 2, tonumber(A[i + 1])) or 'GONE'
end
OPS.T = function(C, queues, A, i)
  local Q = queues(tonumber(A[i]))
  if not Q then return 'GONE' end
  local out, lots = take(Q, tonumber(A[i + 1]), tonumber(A[i + 2]))
  return out, { 'take', tonumber(A[i]), out[1], lots[2], lots[3] }
end
OPS.R = function(C, queues, A, i)
  local Q = queues(tonumber(A[i]))
  return Q and returns(Q, A, i + 2, tonumber(A[i + 1])) or 'GONE'
end
OPS.J = function(C, queues, A, i)
  local Q = queues(tonumber(A[i]))
  return Q and held.rejects(Q, A, i + 2, tonumber(A[i + 1])) or 'GONE'
end
OPS.N = function(C, queues, A, i)
  local Q = queues(tonumber(A[i]))
  return Q and held.notes(Q, A, i + 2, tonumber(A[i + 1])) or 'GONE'
end
OPS.C = function(C, queues, A, i)
  local Q = queues(tonumber(A[i]))
  return Q and Q.h.len - Q.h.leased or 'GONE'
end
OPS.B = function(C, queues, A, i)
  local Q, k, t = queues(tonumber(A[i])), tonumber(A[i + 2]), num(C.now)
  if not Q then return 'GONE' end
  for j = i + 3, i + 3 * k, 3 do bury(Q, A[j + 2], t, A[i + 1], '', A[j], nil, A[j + 1]) end
  return k
end
OPS.X = function(C, queues, A, i)
  return commit(C, queues, C.keys[tonumber(A[i])], A[i + 1], A[i + 2], parse_parts(A, i + 4, tonumber(A[i + 3])))
end
OPS.W = function(C, queues, A, i)
  return publish_watched(C, queues(tonumber(A[i + 2])), C.keys[tonumber(A[i])], A[i + 1], A, i + 3)
end
OPS.U = function(C, queues, A, i)
  return numbered(C, queues(tonumber(A[i + 1])), C.keys[tonumber(A[i])], tonumber(A[i + 2]), A, i + 3)
end
OPS.Q = FUNCTIONS.request
OPS.L = sends
OPS.H = function(C) return head_of(open_log(C)) end

-- The index of the next operation.
local AFTER = {
  P = function(A, i) return i + 4 + 3 * A[i + 3] end,
  O = function(A, i) return i + 4 + 3 * A[i + 3] end,
  A = function(A, i) return i + 2 + 5 * A[i + 1] end,
  T = function(_, i) return i + 3 end,
  R = function(A, i) return i + 2 + 6 * A[i + 1] end,
  J = function(A, i) return i + 2 + 5 * A[i + 1] end,
  N = function(A, i) return i + 2 + 4 * A[i + 1] end,
  C = function(_, i) return i + 1 end,
  B = function(A, i) return i + 3 + 3 * A[i + 2] end,
  U = function(_, i) return i + 9 end,
  W = function(_, i) return i + 7 end,
  Q = FUNCTIONS.after_request,
  L = after_sends,
  H = function(_, i) return i end,
  X = function(A, i) return after_parts(A, i + 4, tonumber(A[i + 3])) end,
}

-- Runs an operation; an error, as of a damaged queue, fails this operation only.
local function attempt(C, queues, A, i)
  local ok, reply, keep = pcall(OPS[A[i]], C, queues, A, i + 1)
  if ok then return reply, keep end
  return 'FAULT ' .. tostring(type(reply) == 'table' and reply.err or reply)
end

local function index_lots(C, key)
  in_parts('SREM', key, C.freed)
  in_parts('SADD', key, C.held)
end

local function work(K, A)
  begin()
  local C = { held = {}, freed = {}, stopped = {}, keys = K, wake = A[5] ~= '' and A[5] or nil, generation = generation_of(A[1]),
    dataset = dataset_of(A[1]), log_keys = { s = K[5], h = K[6], held = K[7] } }
  local opened, list = {}, {}
  local function queues(q)
    if opened[q] == nil then
      opened[q] = open_queue(C, K, FIRST + 8 * q) or false
      if opened[q] then list[#list + 1] = opened[q] end
    end
    return opened[q] or nil
  end
  local err, kept = enter(C, K, A)
  if err then return err end
  C.session, C.now = A[2], C.now or now_ms()
  if kept then return kept.err and redis.error_reply(kept.err) or replay(queues, A, kept) end
  local deadline = tonumber(A[4])
  if deadline > 0 and C.now > deadline then
    remember(K, C, { err = 'LATE the deadline had passed; nothing was done' })
    return redis.error_reply('LATE the deadline had passed; nothing was done')
  end
  local replies, stored, i = {}, {}, 7
  while A[i] do
    local reply, keep = attempt(C, queues, A, i)
    replies[#replies + 1] = reply
    stored[#stored + 1] = keep or reply
    i = AFTER[A[i]](A, i + 1)
  end
  for q = 1, #list do close_queue(list[q]) end
  close_log(C)
  index_lots(C, K[4])
  remember(K, C, stored)
  return replies
end
