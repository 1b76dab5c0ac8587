-- Scan, redrive and purge dead letters

local READ_MOST = 4 * 1024 * 1024  -- octets that one call handles; a larger dead letter is handled alone

local LEAST = '\0\0\0\1\0'         -- a record with one octet
local AT_ONCE = 4                  -- light dead letters that are read together; more are hardly faster

-- Parses the filter in A: latest time of death, substring of the origin, reasons.
local function wanted_of(A)
  local latest, origin, reasons = tonumber(A[6] or 0), A[7] or '', nil
  for i = 8, #A do
    reasons = reasons or {}
    reasons[A[i]] = true
  end
  return { latest = latest > 0 and latest or nil, origin = origin ~= '' and origin or nil, reasons = reasons }
end

local function is_wanted(wanted, e)
  return (not wanted.reasons or wanted.reasons[e.reason]) and (not wanted.latest or tonumber(e.died) <= wanted.latest)
    and (not wanted.origin or string.find(e.origin, wanted.origin, 1, true) ~= nil)
end

-- Returns the octets of a dead letter, whether it matches, and the octets of its body, which is cut to `shown`.
local function examine(fields, wanted, shown)
  local read, e, at = 0, {}, nil
  for j = 1, #fields, 2 do
    read = read + #fields[j + 1]
    e[fields[j]] = fields[j + 1]
    if fields[j] == 'body' then at = j + 1 end
  end
  if not is_wanted(wanted, e) then return read, false end
  if shown >= 0 then fields[at] = string.sub(e.body, 1, shown) end
  return read, true, #e.body
end

-- Whether all dead letters from a place on are light: it follows the last that may be heavy (false: any may be).
local function are_light(place, heavy)
  if not heavy or place == '-' then return false end
  local ms, seq = string.match(place, '^%(?(%d+)-(%d+)$')
  local heavy_ms, heavy_seq = string.match(heavy, '^(%d+)-(%d+)$')
  ms, seq, heavy_ms, heavy_seq = tonumber(ms), tonumber(seq), tonumber(heavy_ms), tonumber(heavy_seq)
  return ms > heavy_ms or ms == heavy_ms and seq >= heavy_seq
end

-- KEYS d q; ARGV start end count octets-of-a-body [limit latest origin reason ...]. Returns {1 = there may be more, id of
-- the last one scanned, then for each match: id, octets of the whole body, fields}: at most `count` matches, with the first octets
-- of bodies (-1 = all), from at most `limit` dead letters and READ_MOST octets plus one dead letter. Heavy ones, of up to 16 MiB,
-- are read one by one.
-- latest: time of death in ms, 0 = any; origin: a substring; reasons: none = any. Older callers pass four arguments and no q, and
-- get no id of the last one.
FUNCTIONS.dead = function(K, A)
  begin()
  local most, shown, limit, wanted = tonumber(A[3]), tonumber(A[4]), tonumber(A[5] or A[3]), wanted_of(A)
  local start, out, read, found = A[1], { 1, '' }, 0, 0
  local heavy, light = K[2] and call('HGET', K[2], 'heavy_dead'), false
  while found < most and limit > 0 and read < READ_MOST do
    light = light or are_light(start, heavy)
    local asked, octets = math.min(light and AT_ONCE or 1, most - found, limit), 0
    local letters = call('XRANGE', K[1], start, A[2], 'COUNT', asked)
    for i = 1, #letters do
      local id, fields = letters[i][1], letters[i][2]
      local weight, matches, size = examine(fields, wanted, shown)
      octets = octets + weight
      if matches then
        found = found + 1
        out[#out + 1], out[#out + 2], out[#out + 3] = id, size, fields
      end
      out[2], start = id, '(' .. id
    end
    if #letters < asked then
      out[1] = 0
      break
    end
    read, limit = read + octets, limit - asked
  end
  if not A[5] then table.remove(out, 2) end
  return out
end


local function encode_record(body, attributes)
  local length = #body + (attributes and #attributes + 2 or 0)
  local head = string.char(attributes and 1 or 0, math.floor(length / 65536), math.floor(length / 256) % 256, length % 256)
  if not attributes then return head .. body end
  return head .. string.char(math.floor(#attributes / 256), #attributes % 256) .. attributes .. body
end

-- Adds the data for a span of a dead letter with a trace context in its attributes.
local function add_traced(reply, id, e)
  if not e.attributes or not string.find(e.attributes, 'traceparent', 1, true) then return end
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = id, e.reason, e.attributes
end

-- KEYS epoch, 8 of the source, 8 of the target, [epoch again]; ARGV epoch wake-channel [run] id ...
-- Moves each dead letter to the target in one step. Returns {moved, missing, why it stopped}; it also stops, without a reason,
-- after READ_MOST octets. The dead letters that a named run has moved are counted in the source, to continue after a crash. Without
-- ids: checks whether the target accepts messages. With the last key the reply continues with id, reason and attributes of each
-- moved one that may be traced; older libraries ignore that key.
FUNCTIONS.redrive = on_dataset(function(K, A)
  local C = { now = now_ms(), generation = generation_of(A[1]), wake = A[2], bridged = true }
  local source = open_queue(C, K, 2)
  local target = source
  if K[3] ~= K[11] then target = open_queue(C, K, 10) end
  if not source or not target then return 'GONE' end
  local moved, missing, reason, octets, traced = 0, 0, closed(target, '') or '', 0, { 0, 0, '' }
  local run = A[3] and not string.match(A[3], '^%d+%-%d+$') and A[3]  -- an id is no run: older callers pass none
  local first = run and 4 or 3
  if reason == '' and not A[first] and room(target, 1, 1, LEAST) < 1 then reason = 'FULL' end
  for i = first, #A do
    if reason ~= '' or octets >= READ_MOST then break end
    local raw = call('XRANGE', source.d, A[i], A[i])[1]
    if not raw then
      missing = missing + 1
    else
      local e = {}
      for j = 1, #raw[2], 2 do e[raw[2][j]] = raw[2][j + 1] end
      local record = encode_record(e.body, e.attributes)
      if is_too_large(target, 1, #record - 4, record) then reason = 'LARGE' break end
      if room(target, 1, #record - 4, record) < 1 then reason = 'FULL' break end
      append(target, 1, num(C.now), e.origin, record, 'r', num(tonumber(e.redriven or 0) + 1))
      call('XDEL', source.d, A[i])
      add(target, 'len', 1)
      add(target, 'bytes', #record - 4)
      count(target, 'added', 1)
      count(target, 'bytes_in', #record - 4)
      call('HINCRBY', source.q, 'redriven', 1)
      moved, octets = moved + 1, octets + #record
      if K[18] then add_traced(traced, A[i], e) end
    end
  end
  close_queue(target)
  if run and moved > 0 then call('HINCRBY', source.q, 'redrive:' .. run, moved) end
  traced[1], traced[2], traced[3] = moved, missing, reason
  return traced
end)

-- KEYS epoch, q, d; ARGV epoch id ... Returns how many were deleted.
FUNCTIONS.purge = on_dataset(function(K, A)
  local gone = 0
  for i = 2, #A do gone = gone + call('XDEL', K[3], A[i]) end
  if gone > 0 then call('HINCRBY', K[2], 'purged', gone) end
  return gone
end)
