-- Deliver messages

local function add_delivery(out, lot, piece)
  local y = #out
  out[y + 1], out[y + 2], out[y + 3], out[y + 4], out[y + 5] = lot, piece.id, piece.n, piece.from, piece.count
  out[y + 6], out[y + 7] = piece.blob, piece.t .. ' ' .. piece.o
  local h = piece.h
  out[y + 8] = h and (num(h.acquired) .. ' ' .. num(h.failed) .. (h.note and ' ' .. h.note or '')) or ''
end

local function new_lot(Q, left, kind, rest)
  add(Q, 'lot', 1)
  local lot = num(Q.h.lot)
  call('HSET', Q.l, lot, Q.C.session .. ' ' .. num(left) .. ' ' .. kind .. ' ' .. rest)
  Q.C.held[#Q.C.held + 1] = Q.h.id .. ' ' .. lot
  return lot
end

-- Assigns the history of a message at the end of the stream, which keeps its counts, to this lot.
local function reacquire_end(Q, lot, piece)
  local key = num(piece.number * PER_ENTRY)
  local record = call('HGET', Q.f, key)
  if not record then return end
  local h = history(record)
  h.acquired, h.last, piece.h = h.acquired + 1, num(Q.C.now), h
  call('HSET', Q.f, key, history_text(lot, h))
end

local function lease_new(Q, pieces, out)
  if #pieces == 0 then return end
  local total, kind = 0, 'F'
  for i = 1, #pieces do
    total = total + pieces[i].count
    if pieces[i].c then kind = 'H' end
  end
  local a, z = pieces[1], pieces[#pieces]
  local lot = new_lot(Q, total, kind, num(a.number) .. ' ' .. a.from .. ' ' .. num(z.number) .. ' ' .. (z.from + z.count))
  for i = 1, #pieces do
    if pieces[i].c then reacquire_end(Q, lot, pieces[i]) end
    add_delivery(out, lot, pieces[i])
  end
  return lot
end

local function lease_returned(Q, pieces, out)
  if #pieces == 0 then return end
  local keys, args = {}, {}
  for i = 1, #pieces do keys[i] = pieces[i].key end
  local lot = new_lot(Q, #pieces, 'R', table.concat(keys, ' '))
  for i = 1, #pieces do
    local h = pieces[i].h
    h.acquired, h.last = h.acquired + 1, num(Q.C.now)
    args[#args + 1] = keys[i]
    args[#args + 1] = history_text(lot, h)
    add_delivery(out, lot, pieces[i])
  end
  call('HSET', Q.f, unpack(args))
  return lot
end

-- Moves expired pieces to the dead letters; returns the others.
local function expire(Q, pieces)
  local alive, number = {}, 0
  for i = 1, #pieces do
    local p = pieces[i]
    if tonumber(p.t) + Q.limits.ttl <= Q.C.now then
      count(Q, 'expired', p.count)
      kill(Q, p, 'expired')
    else
      alive[#alive + 1], number = p, number + p.count
    end
  end
  return alive, number
end

-- Gathers messages that have not expired, continuing for a while if all had. The last result: whether anything was gathered, so
-- that another call makes progress.
local function gather_alive(Q, want, max_bytes)
  local back, new, got = gather(Q, want, max_bytes)
  if Q.limits.ttl == 0 then return back, new, got, got > 0 end
  local scanned = 0
  while got > 0 do
    local old, fresh
    scanned = scanned + got
    back, old = expire(Q, back)
    new, fresh = expire(Q, new)
    if old + fresh > 0 or scanned >= STEP then return back, new, old + fresh, true end
    back, new, got = gather(Q, want, max_bytes)
  end
  return back, new, 0, false
end

-- Returns {more, (lot, entry, n, from, count, records, "t origin", "acquired failed [note]" | '')...}; more = 1: repeat
-- the call.
local function take(Q, want, max_bytes)
  if Q.limits.paused then return { 0 }, {} end
  local back, new, got, found = gather_alive(Q, want, max_bytes)
  local out = { (found and got < want and Q.h.len - Q.h.leased - got > 0) and 1 or 0 }
  local lots = { 'lots' }
  lots[2] = lease_returned(Q, back, out) or lease_new(Q, new, out)
  if #back > 0 and #new > 0 then lots[3] = lease_new(Q, new, out) end
  count(Q, 'delivered', got)
  add(Q, 'leased', got)
  return out, lots
end

-- Lots

local function parse_lot(text)
  local session, left, kind, rest = string.match(text, '^(%S+) (%d+) (%u) (.*)$')
  local lot = { session = session, left = tonumber(left), kind = kind, rest = rest, before = tonumber(left) }
  if kind ~= 'R' then
    local e1, i1, e2, i2 = string.match(rest, '^(%d+) (%d+) (%d+) (%d+)$')
    lot.e1, lot.i1, lot.e2, lot.i2 = tonumber(e1), tonumber(i1), tonumber(e2), tonumber(i2)
  end
  return lot
end

-- The lot, if this session holds it; loaded once for each call.
local function lot_of(Q, number)
  if not Q.lots then Q.lots = {} end
  local lot = Q.lots[number]
  if lot == nil then
    local text = call('HGET', Q.l, number)
    lot = text and parse_lot(text) or false
    if lot and lot.session ~= Q.C.session then lot = false end
    Q.lots[number] = lot
  end
  return lot
end

local function save_lots(Q)
  for number, lot in pairs(Q.lots or {}) do
    if lot and (lot.left ~= lot.before or lot.changed) then
      if lot.left <= 0 then
        call('HDEL', Q.l, number)
        Q.C.freed[#Q.C.freed + 1] = Q.h.id .. ' ' .. number
        Q.lots[number] = false
      else
        call('HSET', Q.l, number, lot.session .. ' ' .. num(lot.left) .. ' ' .. lot.kind .. ' ' .. lot.rest)
        lot.before, lot.changed = lot.left, nil
      end
    end
  end
end

local function within(lot, number, first, last)
  if number < lot.e1 or number > lot.e2 then return false end
  if number == lot.e1 and first < lot.i1 then return false end
  return number < lot.e2 or last < lot.i2
end

-- Returns false if a position's history names another lot, that is, if the lease is lost; else true and the positions with one.
local function held_history(Q, lot_number, lot, number, mask)
  if lot.kind == 'F' then return true, {} end
  local keys = {}
  for b = 0, 31 do
    if band(mask, shl(1, b)) ~= 0 then keys[#keys + 1] = num(number * PER_ENTRY + b) end
  end
  local records, mine = call('HMGET', Q.f, unpack(keys)), {}
  for i = 1, #keys do
    if records[i] then
      if string.match(records[i], '^%d+') ~= lot_number then return false end
      mine[#mine + 1] = keys[i]
    elseif lot.kind == 'R' then
      return false
    end
  end
  return true, mine
end

local function first_last(mask)
  local first, last = 31, 0
  for b = 0, 31 do
    if band(mask, shl(1, b)) ~= 0 then
      if b < first then first = b end
      if b > last then last = b end
    end
  end
  return first, last
end

-- Whether this session holds all messages of the mask, and the positions of their histories.
local function holds(Q, lot_number, entry, mask)
  local lot = lot_of(Q, lot_number)
  if not lot or mask == 0 then return false end
  local number = number_of(entry)
  if lot.kind ~= 'R' then
    local first, last = 0, 31
    if number == lot.e1 or number == lot.e2 then first, last = first_last(mask) end
    if not within(lot, number, first, last) then return false end
  end
  if band(mask_of(Q, entry), mask) ~= 0 then return false end
  return held_history(Q, lot_number, lot, number, mask)
end
