-- Settle leased messages

local function ack(Q, lot_number, entry, n, mask, bytes)
  local ok, mine = holds(Q, lot_number, entry, mask)
  local number = popcount(mask)
  if ok and bor(mask_of(Q, entry), mask) ~= ones(n) and mask_of(Q, entry) == 0 then ok = load(Q, entry) ~= nil end
  if ok then
    leave(Q, entry, number, bytes)
    if not settle_mask(Q, entry, n, mask) then
      ok = false
      leave(Q, entry, -number, -bytes)  -- undo: the entry was removed before
    end
  end
  if not ok then count(Q, 'fenced', number) return 0 end
  if #mine > 0 then call('HDEL', Q.f, unpack(mine)) end
  local lot = lot_of(Q, lot_number)
  lot.left = lot.left - number
  count(Q, 'acked', number)
  count(Q, 'bytes_out', bytes)
  add(Q, 'leased', -number)
  if n == 1 then delivery_tracking.settled(Q, entry) end
  return number
end

-- The common case, a whole entry of a first delivery: returns true if it applied.
local function ack_whole(Q, lot, entry, n)
  local number = number_of(entry)
  if number < lot.e1 or number > lot.e2 or number == lot.e1 and lot.i1 > 0 or number == lot.e2 and lot.i2 < n then
    return false
  end
  if call('XDEL', Q.s, entry) == 0 then return false end
  if n == 1 then delivery_tracking.settled(Q, entry) end
  return true
end

-- (lot, entry, n, mask, bytes) * k; returns {acked, index of each fenced one...}
local function acks(Q, A, i, k)
  local out, done, whole, bytes = { 0 }, 0, 0, 0
  if not Q.masks then Q.masks, Q.masked = {}, call('EXISTS', Q.m) == 1 end
  local plain = not Q.masked and Q.h.rc_at == 0
  for j = 1, k do
    local n, mask = tonumber(A[i + 2]), tobit(tonumber(A[i + 3]))
    local lot = lot_of(Q, A[i])
    if plain and not Q.masked and lot and lot.kind == 'F' and mask == ones(n) and ack_whole(Q, lot, A[i + 1], n) then
      lot.left, whole, bytes = lot.left - n, whole + n, bytes + A[i + 4]
    else
      local c = ack(Q, A[i], A[i + 1], n, mask, tonumber(A[i + 4]))
      if c == 0 then out[#out + 1] = j - 1 end
      done = done + c
    end
    i = i + 5
  end
  if whole > 0 then
    add(Q, 'len', -whole)
    add(Q, 'bytes', -bytes)
    add(Q, 'leased', -whole)
    count(Q, 'acked', whole)
    count(Q, 'bytes_out', bytes)
  end
  out[1] = done + whole
  save_lots(Q)
  return out
end

-- A leased message, to return or reject it: its entry, position, history; nothing if the lease is lost.
local function held_one(Q, lot_number, entry, index)
  if not holds(Q, lot_number, entry, shl(1, index)) then return end
  local e = load(Q, entry)
  if not e then return end
  local key = num(number_of(entry) * PER_ENTRY + index)
  local record = call('HGET', Q.f, key)
  local now = num(Q.C.now)
  return e, key, record and history(record) or { acquired = 1, failed = 0, first = now, last = now, err = '' }
end

local function forget_one(Q, entry, e, index, key, size)
  leave(Q, entry, 1, size)
  settle_mask(Q, entry, e.n, shl(1, index))
  call('HDEL', Q.f, key)
end

local function release_one(Q, lot_number)
  local lot = lot_of(Q, lot_number)
  lot.left = lot.left - 1
  add(Q, 'leased', -1)
  return lot
end

local held = {} -- a table, as Lua allows 200 local names

-- `act(at, e, key, h)` for each of k held messages, whose arguments begin at A[at] and are `width` wide: lot, entry, index, ...
-- Returns {done, fenced, index of each fenced...}.
function held.each(Q, A, i, k, width, act)
  local done, fenced, out = 0, 0, { 0, 0 }
  for j = 0, k - 1 do
    local at = i + j * width
    local e, key, h = held_one(Q, A[at], A[at + 1], tonumber(A[at + 2]))
    if e then
      act(at, e, key, h)
      done = done + 1
    else
      fenced = fenced + 1
      out[#out + 1] = j
    end
  end
  count(Q, 'fenced', fenced)
  save_lots(Q)
  out[1], out[2] = done, fenced
  return out
end

-- (lot, entry, index, note) * k. A note stays until the message is settled or dead.
function held.notes(Q, A, i, k)
  return held.each(Q, A, i, k, 4, function(at, _, key, h)
    h.note = A[at + 3] ~= '' and A[at + 3] or nil
    call('HSET', Q.f, key, history_text(A[at], h))
    local lot = lot_of(Q, A[at])
    if lot.kind == 'F' then lot.kind, lot.changed = 'H', true end
  end)
end

local function to_dead(Q, entry, e, index, key, h, reason, err)
  local record = slice(e.b, index, 1)
  forget_one(Q, entry, e, index, key, #record - 4)
  bury(Q, record, e.t, e.o, entry, reason, h, err, e.r)
end

local function to_end(Q, entry, e, index, key, h)
  local record = slice(e.b, index, 1)
  forget_one(Q, entry, e, index, key, #record - 4)
  local more = e.r and { 'r', e.r } or {}
  local id = call('XADD', Q.s, Q.appended or next_id(Q), 'n', '1', 't', e.t, 'o', e.o, 'b', record, 'c', '1', unpack(more))
  Q.appended = Q.C.generation .. '-*'
  call('HSET', Q.f, num(number_of(id) * PER_ENTRY), history_text('0', h))
  add(Q, 'len', 1)
  add(Q, 'bytes', #record - 4)
  delivery_tracking.move(Q, entry, id)
end

-- (lot, entry, index, place front|end, failed 0|1, error) * k; reply {returned, dead, fenced, index of each fenced...}
local function returns(Q, A, i, k)
  local back, dead, fenced, out = 0, 0, 0, { 0, 0, 0 }
  for j = 1, k do
    local lot_number, entry, index, place, failed, err = A[i], A[i + 1], tonumber(A[i + 2]), A[i + 3], A[i + 4], A[i + 5]
    i = i + 6
    local e, key, h = held_one(Q, lot_number, entry, index)
    if not e then
      fenced = fenced + 1
      out[#out + 1] = j - 1
    else
      h.failed = h.failed + tonumber(failed)
      if err ~= '' then h.err = err end
      local lot = release_one(Q, lot_number)
      if failed == '1' and Q.limits.deliveries > 0 and h.failed >= Q.limits.deliveries then
        to_dead(Q, entry, e, index, key, h, 'max_deliveries', h.err)
        dead = dead + 1
      else
        if place == 'end' then
          to_end(Q, entry, e, index, key, h)
        else
          call('HSET', Q.f, key, history_text('0', h))
          call('ZADD', Q.r, key, key)
        end
        if lot.kind == 'F' then lot.kind, lot.changed = 'H', true end
        back = back + 1
      end
    end
  end
  count(Q, 'returned', back)
  count(Q, 'fenced', fenced)
  save_lots(Q)
  out[1], out[2], out[3] = back, dead, fenced
  return out
end

-- (lot, entry, index, reason, error) * k
function held.rejects(Q, A, i, k)
  return held.each(Q, A, i, k, 5, function(at, e, key, h)
    release_one(Q, A[at])
    to_dead(Q, A[at + 1], e, tonumber(A[at + 2]), key, h, A[at + 3], A[at + 4])
  end)
end
