-- Load queues once for each call, and write them back once

-- Fields that decisions need are loaded; counters are only incremented. `limits` is one field, parsed once for all calls:
-- "max_length max_bytes overflow ttl max_deliveries paused dead_max ack_level tag largest", 0 = no bound; tag: published
-- under, '' or * = not published; largest: octets of a body for peers, of queues with `remote` only. Older documents lack the last
-- ones.
local FIELDS = { 'id', 'len', 'bytes', 'leased', 'ce', 'ci', 'lot', 'moved', 'rc_at', 'watched', 'gens', 'limits', 'holder' }
local NUMBERS = 10 -- of them, after the id

local parsed, parsed_count = {}, 0
local function limits_of(text)
  local found = parsed[text]
  if not found then
    if parsed_count == 1000 then parsed, parsed_count = {}, 0 end
    local length, bytes, overflow, ttl, deliveries, paused, dead, level, tag, largest =
      string.match(text, '^(%d+) (%d+) (%S+) (%d+) (%d+) (%d) (%d+) (%S+) ?([^ ]*) ?(%d*)$')
    found = { length = tonumber(length), bytes = tonumber(bytes), evict = overflow == 'dead_letter_oldest',
      ttl = tonumber(ttl), deliveries = tonumber(deliveries), paused = paused == '1', dead = tonumber(dead),
      fsync = level == 'fsync', tag = tag ~= '' and tag ~= '*' and tag or nil,
      largest = tonumber(largest) or 0, remote = (tonumber(largest) or 0) > 0 }
    parsed[text], parsed_count = found, parsed_count + 1
  end
  return found
end

-- first = index of the queue's first key: s q l r f m d x
local function open_queue(C, K, first)
  local v = call('HMGET', K[first + 1], unpack(FIELDS))
  if not v[1] then return nil end
  local h = { id = v[1], gens = v[11] or nil, holder = v[13] or nil }
  for i = 2, NUMBERS do h[FIELDS[i]] = tonumber(v[i] or 0) end
  return { h = h, limits = limits_of(v[12]), dirty = {}, counts = {}, C = C, ready = h.len - h.leased,
    s = K[first], q = K[first + 1], l = K[first + 2], r = K[first + 3], f = K[first + 4], m = K[first + 5],
    d = K[first + 6], x = K[first + 7] }
end

local function set(Q, field, value) Q.h[field] = value Q.dirty[field] = true end
local function add(Q, field, by) if by ~= 0 then Q.h[field] = Q.h[field] + by Q.dirty[field] = true end end
local function count(Q, counter, by) if by ~= 0 then Q.counts[counter] = (Q.counts[counter] or 0) + by end end

local function close_queue(Q)
  local args = {}
  for field in pairs(Q.dirty) do
    args[#args + 1] = field
    args[#args + 1] = field == 'gens' and Q.h.gens or num(Q.h[field])
  end
  if #args > 0 then call('HSET', Q.q, unpack(args)) end
  for counter, by in pairs(Q.counts) do call('HINCRBY', Q.q, counter, num(by)) end
  if Q.C.wake and Q.ready <= 0 and Q.h.len - Q.h.leased > 0 then call('PUBLISH', Q.C.wake, Q.h.id) end
end

-- Entry numbers increase across generations, so a number identifies an entry; gens = "gen:first ...".
local function generation_at(Q, number)
  local found
  for g, first in string.gmatch(Q.h.gens or '', '(%d+):(%d+)') do
    if tonumber(first) <= number then found = g end
  end
  return found or '1'
end
local function entry_id(Q, number)
  if not Q.single then Q.single = string.match(Q.h.gens or '1:0', '^(%d+):%d+$') or 'several' end
  return (Q.single ~= 'several' and Q.single or generation_at(Q, number)) .. '-' .. num(number)
end

local function fields_of(raw)   -- n t o b [c] [r], as append and to_end wrote them
  local c = raw[9] == 'c'
  return { n = tonumber(raw[2]), t = raw[4], o = raw[6], b = raw[8], c = c and raw[10] or nil, r = raw[c and 12 or 10] }
end

-- Loads an entry as {n, t, o, b, c, r} from the stream or from x; nil if it is settled.
local function load(Q, entry)
  local found = call('XRANGE', Q.s, entry, entry)[1]
  if found then return fields_of(found[2]) end
  if Q.h.moved > 0 then
    local kept = call('HGET', Q.x, entry)
    if kept then return cmsgpack.unpack(kept) end
  end
end

-- Settle single positions or a whole entry

local function mask_of(Q, entry)
  if not Q.masks then Q.masks, Q.masked = {}, call('EXISTS', Q.m) == 1 end
  local v = Q.masks[entry]
  if not v then
    v = Q.masked and tonumber(call('HGET', Q.m, entry) or 0) or 0
    Q.masks[entry] = v
  end
  return v
end

local function drop_entry(Q, entry)
  if call('XDEL', Q.s, entry) == 1 then return true end
  if Q.h.moved > 0 and call('HDEL', Q.x, entry) == 1 then add(Q, 'moved', -1) return true end
  return false
end

-- Marks messages as settled, and removes the entry with its last one. Returns false if the entry was removed before.
local function settle_mask(Q, entry, n, mask)
  local old = mask_of(Q, entry)
  local new = bor(old, mask)
  if new == ones(n) then
    if not drop_entry(Q, entry) then return false end
    if old ~= 0 then call('HDEL', Q.m, entry) end
    Q.masks[entry] = nil
  else
    call('HSET', Q.m, entry, tostring(new))
    Q.masks[entry], Q.masked = new, true
  end
  return true
end

-- Subtracts messages that leave from len and bytes, and from a running reconciliation that counted them.
local function leave(Q, entry, number, bytes)
  add(Q, 'len', -number)
  add(Q, 'bytes', -bytes)
  if Q.h.rc_at > 0 and (number_of(entry) <= Q.h.rc_at or Q.h.moved > 0 and #call('XRANGE', Q.s, entry, entry) == 0) then
    call('HINCRBY', Q.q, 'rc_len', num(-number))
    call('HINCRBY', Q.q, 'rc_bytes', num(-bytes))
  end
end

-- A note has no spaces and follows a ';', which older records do not contain.
local function history(record)
  local lot, acquired, failed, first, last, note, err =
    string.match(record, '^(%d+) (%d+) (%d+) (%d+) (%d+);?(%S*) ?(.*)$')
  return { lot = lot, acquired = tonumber(acquired), failed = tonumber(failed), first = first, last = last,
    note = note ~= '' and note or nil, err = err }
end
local function history_text(lot, h) return lot .. ' ' .. num(h.acquired) .. ' ' .. num(h.failed) .. ' ' .. h.first ..
  ' ' .. h.last .. (h.note and ';' .. h.note or '') .. ' ' .. (h.err or '') end

-- Delivery tracking: the step that removes a tracked message from the queue writes the result to its key. A tracked message stays
-- the only one of its entry when it moves; Q.h.watched saves the lookup in queues without any.

local delivery_tracking = {}

local function watch_field(entry) return 'w:' .. num(number_of(entry)) end

delivery_tracking.watch = function(Q, entry, key)
  call('HSET', Q.q, watch_field(entry), key)
  add(Q, 'watched', 1)
end

-- Sets the result, unless the key has expired because it is no longer polled.
delivery_tracking.report = function(Q, entry, result)
  if Q.h.watched == 0 then return end
  local key = call('HGET', Q.q, watch_field(entry))
  if not key then return end
  call('SET', key, result, 'XX', 'KEEPTTL')
  call('HDEL', Q.q, watch_field(entry))
  add(Q, 'watched', -1)
end

delivery_tracking.settled = function(Q, entry) delivery_tracking.report(Q, entry, 'settled ' .. Q.C.session) end

delivery_tracking.move = function(Q, from, to)
  local key = Q.h.watched > 0 and call('HGET', Q.q, watch_field(from))
  if not key then return end
  call('HDEL', Q.q, watch_field(from))
  call('HSET', Q.q, watch_field(to), key)
end

-- Dead letters

local LIGHT = 16 * 1024  -- octets of a record up to which dead letters are read together (redrive.lua)

local function attributes_and_body(record)
  local flags = string.byte(record, 1)
  if band(flags, 1) == 0 then return nil, string.sub(record, 5) end
  local size = string.byte(record, 5) * 256 + string.byte(record, 6)
  return string.sub(record, 7, 6 + size), string.sub(record, 7 + size)
end

-- Moves a record to the dead letters. redriven: number of former redrives, or nil.
local function bury(Q, record, t, origin, entry, reason, h, err, redriven)
  local attributes, body = attributes_and_body(record)
  local now = num(Q.C.now)
  local args = { '*', 'reason', reason, 'queue', Q.h.id, 'entry', entry, 'enqueued', t, 'died', now, 'origin', origin,
    'acquired', num(h and h.acquired or 0), 'failed', num(h and h.failed or 0), 'first', h and h.first or '0',
    'last', h and h.last or '0', 'error', err or '', 'body', body }
  if attributes then args[#args + 1] = 'attributes' args[#args + 1] = attributes end
  if h and h.note then args[#args + 1] = 'note' args[#args + 1] = h.note end
  if redriven then args[#args + 1] = 'redriven' args[#args + 1] = redriven end
  local id = call('XADD', Q.d, unpack(args))
  call(#record > LIGHT and 'HSET' or 'HSETNX', Q.q, 'heavy_dead', id)
  if entry ~= '' then delivery_tracking.report(Q, entry, 'dead ' .. id .. ' ' .. reason) end
  count(Q, 'dead', 1)
  local most = Q.limits.dead
  if most > 0 then
    local dropped = call('XTRIM', Q.d, 'MAXLEN', '=', num(most))
    count(Q, 'dead_trimmed', dropped)
    count(Q, 'dead_overflowed', dropped)
  end
end
