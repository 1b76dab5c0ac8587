-- The log of the text service: messages sent here and at neighbours, in the order of arrival (docs/pubsub.md)

local LOG_ENTRY = 65536  -- octets of lines of an entry, unless one line is longer
local LOG_ERA = 1048576  -- octets of lines in one era, which bound a read to the end of the era
local LOG_FIELDS = { 'store', 'server', 'inc', 'era', 'next', 'serial', 'bytes', 'level', 'bindings', 'era_bytes' }

-- The memory of an entry, rounded up. Measured as the growth of used_memory over thousands of equal entries on Redis 7.0 and Valkey
-- 9.1: 28 to 36 octets in addition to a line of 9 octets and the origin, more for large numbers. Allocators lose an eighth by
-- rounding up (jemalloc up to a quarter), so the estimate may be a tenth too low for some sizes.
local function weight(origin, block) return #block + math.floor(#block / 8) + #origin + 48 end

-- The identity of this server; it changes with a restart, a restored copy, and each promotion to primary.
local run_id, server_id, server_at = nil, nil, 0
local function server_of(C)
  run_id = run_id or string.match(call('INFO', 'server'), '\nrun_id:(%x+)')
  local age = C.now - server_at
  if not server_id or age < 0 or age >= GUARD_MS then
    server_id = run_id .. string.match(call('INFO', 'replication'), '\nmaster_replid:(%x+)')
    server_at = C.now
  end
  return server_id
end

-- C.log_keys = { s, h, held, gone }; C.dataset = the store's id
local function open_log(C)
  if not C.log then
    local v = call('HMGET', C.log_keys.h, unpack(LOG_FIELDS))
    C.log = { store = v[1], server = v[2], inc = v[3], era = tonumber(v[4] or 0), next = tonumber(v[5] or 1),
      serial = tonumber(v[6] or 0), bytes = tonumber(v[7] or 0), level = v[8] or 'fsync', bindings = v[9] or '0',
      era_bytes = tonumber(v[10] or 0), keys = C.log_keys, counts = {}, sets = {} }
  end
  return C.log
end

local function tally(L, counter, by) if by ~= 0 then L.counts[counter] = (L.counts[counter] or 0) + by end end

-- Sets of numbers as text, "1-100+105-200"; each is read once for each call and written back by close_log.

local function numbers_of(L, key, field)
  local name = key .. ' ' .. field
  local set = L.sets[name]
  if not set then
    set = { key = key, field = field }
    for a, b in string.gmatch(call('HGET', key, field) or '', '(%d+)-(%d+)') do
      set[#set + 1] = { tonumber(a), tonumber(b) }
    end
    L.sets[name] = set
  end
  return set
end

local function include(set, from, to)
  local out, i = {}, 1
  while i <= #set and set[i][2] < from - 1 do out[#out + 1] = set[i] i = i + 1 end
  while i <= #set and set[i][1] <= to + 1 do
    from, to, i = math.min(from, set[i][1]), math.max(to, set[i][2]), i + 1
  end
  out[#out + 1] = { from, to }
  while i <= #set do out[#out + 1] = set[i] i = i + 1 end
  for j = 1, math.max(#out, #set) do set[j] = out[j] end
  set.dirty = true
end

-- Removes from..to; returns how many of them were in the set.
local function exclude(set, from, to)
  local out, removed = {}, 0
  for i = 1, #set do
    local a, b = set[i][1], set[i][2]
    if b < from or a > to then
      out[#out + 1] = set[i]
    else
      removed = removed + math.min(b, to) - math.max(a, from) + 1
      if a < from then out[#out + 1] = { a, from - 1 } end
      if b > to then out[#out + 1] = { to + 1, b } end
    end
  end
  if removed > 0 then
    for j = 1, math.max(#out, #set) do set[j] = out[j] end
    set.dirty = true
  end
  return removed
end

-- 'all', 'none' or 'some' of from..to
local function included(set, from, to)
  for i = 1, #set do
    if set[i][1] <= from and to <= set[i][2] then return 'all' end
    if set[i][1] <= to and from <= set[i][2] then return 'some' end
  end
  return 'none'
end

local function save_set(set)
  if not set.dirty then return end
  local parts = {}
  for i = 1, #set do parts[i] = num(set[i][1]) .. '-' .. num(set[i][2]) end
  if #parts > 0 then call('HSET', set.key, set.field, table.concat(parts, '+')) else call('HDEL', set.key, set.field) end
  set.dirty = false
end

-- Called with each entry, so that ids and numbers are never reused, even if a later step fails.
local function save_place(L)
  call('HSET', L.keys.h, 'next', num(L.next), 'serial', num(L.serial), 'bytes', num(L.bytes), 'era', num(L.era),
    'era_bytes', num(L.era_bytes))
end

local function close_log(C)
  local L = C.log
  if not L then return end
  for _, set in pairs(L.sets) do save_set(set) end
  for counter, by in pairs(L.counts) do call('HINCRBY', L.keys.h, counter, num(by)) end
end

-- Each server, and each restored copy of data, numbers messages under an incarnation of its own. The era makes ids increase even
-- after a restore of older data. If the clock is behind, it skips eras that may have been lost, by a distance that differs between
-- servers.
local LOST_ERAS = 4096   -- 2 GiB of lines or more
local function later_era(L, now, server)
  if now > L.era then return now end
  return L.era + LOST_ERAS * (1 + tonumber(string.sub(redis.sha1hex(server), 1, 4), 16))
end

local function begin_incarnation(C, L, server)
  if L.inc and L.next > 1 then
    local old = numbers_of(L, L.keys.held, L.store .. ' ' .. L.inc)
    include(old, 1, L.next - 1)
    save_set(old)
  end
  L.era, L.era_bytes = later_era(L, C.now, server), 0
  L.store, L.server, L.next = C.dataset, server, 1
  L.inc = string.sub(redis.sha1hex(server .. L.store .. num(L.era) .. num(L.serial)), 1, 16)
  call('HSET', L.keys.h, 'store', L.store, 'server', server, 'inc', L.inc, 'era', num(L.era), 'next', '1',
    'era_bytes', '0')
  tally(L, 'incarnations', 1)
end

local function own_incarnation(C, L)
  local server = server_of(C)
  if not L.inc or L.server ~= server or L.store ~= C.dataset then begin_incarnation(C, L, server) end
end

-- The id is "<era>-<messages in the log up to here>", so the difference of ids is a number of messages. A full era is followed by
-- the next number, not by the time, as this clock may be ahead of the next primary's.
local function log_entry(C, L, origin, first, n, block, bridged)
  local serial = L.serial + n
  if L.era_bytes > 0 and L.era_bytes + #block > LOG_ERA then L.era, L.era_bytes = L.era + 1, 0 end
  call('XADD', L.keys.s, num(L.era) .. '-' .. num(serial), 'n', num(n), 't', num(C.now), 'o', origin,
    'f', num(first), 'x', bridged and '1' or '0', 'b', block)
  L.serial, L.era_bytes, L.bytes = serial, L.era_bytes + #block, L.bytes + weight(origin, block)
end

-- Splits lines into blocks of up to LOG_ENTRY octets; a longer line has its own block.
local function in_blocks(lines, take)
  local from, size = 1, 0
  for i = 1, #lines do
    if i > from and size + #lines[i] > LOG_ENTRY then
      take(i - from, table.concat(lines, '', from, i - 1))
      from, size = i, 0
    end
    size = size + #lines[i]
  end
  take(#lines - from + 1, table.concat(lines, '', from))
end

local function log_own(C, L, n, block, bridged)
  own_incarnation(C, L)
  log_entry(C, L, L.store .. ' ' .. L.inc, L.next, n, block, bridged)
  L.next = L.next + n
  save_place(L)
  tally(L, 'sent', n)
end

-- Why the log accepts no messages now, or nil.
local function log_closed(C, L)
  local full = guard(C)
  if full then return full end
  if L.level == 'fsync' and not C.keeps then return 'UNKEPT' end
end

-- From a queue to the log

local ESCAPES = { ['\\'] = '\\\\', ['\n'] = '\\n', ['\r'] = '\\r' }
local function escape(c) return ESCAPES[c] or string.format('\\x%02x', string.byte(c)) end

local UTF8 = { '\240[\144-\191][\128-\191][\128-\191]', '[\241-\243][\128-\191][\128-\191][\128-\191]',
  '\244[\128-\143][\128-\191][\128-\191]', '\224[\160-\191][\128-\191]', '[\225-\236\238\239][\128-\191][\128-\191]',
  '\237[\128-\159][\128-\191]', '[\194-\223][\128-\191]' }
local function is_utf8(text)
  for i = 1, #UTF8 do text = string.gsub(text, UTF8[i], ' ') end
  return not string.find(text, '[\128-\255]')
end

-- Converts a body to a legal message, escaped if necessary (pubsub.md 5.3).
local function message_of(body)
  if not string.find(body, '[%z\1-\31\128-\255]') then return body end
  if not string.find(body, '[%z\1-\31]') and is_utf8(body) then return body end
  return (string.gsub(body, '[%z\1-\31\128-\255\\]', escape))
end

-- Appends messages of a queue that publishes to the log, except those that came from the log (pubsub.md 5.2).
local function log_bridge(Q, n, blob)
  local lines, head, p = {}, 'SEND ' .. Q.limits.tag .. ' ', 1
  for i = 1, n do
    local q = skip(blob, p, 1)
    local _, body = attributes_and_body(string.sub(blob, p, q - 1))
    lines[i], p = head .. message_of(body) .. '\n', q
  end
  local L = open_log(Q.C)
  in_blocks(lines, function(many, block) log_own(Q.C, L, many, block, true) end)
end
