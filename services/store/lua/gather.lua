-- Gather ready messages in order: returned ones first, then new ones

-- Gathers returned messages until `max_bytes` octets are read. Returns their number, their octets, and the members to remove from r
-- once everything is read. up_to: the highest entry number, nil = any
local function gather_returned(Q, want, max_bytes, out, up_to)
  local highest = up_to and num(up_to * PER_ENTRY + PER_ENTRY - 1) or '+inf'
  local keys = call('ZRANGEBYSCORE', Q.r, '-inf', highest, 'LIMIT', 0, want)
  if #keys == 0 then return 0, 0, keys end
  local records = call('HMGET', Q.f, unpack(keys))
  local scanned, read, entry, loaded = 0, 0, nil, nil
  repeat
    scanned = scanned + 1
    local key = keys[scanned]
    local position = tonumber(key)
    local index = position % PER_ENTRY
    local id = entry_id(Q, (position - index) / PER_ENTRY)
    if id ~= entry then entry, loaded = id, load(Q, id) end
    if loaded then
      local blob = slice(loaded.b, index, 1)
      out[#out + 1] = { id = id, n = loaded.n, from = index, count = 1, t = loaded.t, o = loaded.o, blob = blob,
        key = key, h = history(records[scanned] or ('0 0 0 ' .. num(Q.C.now) .. ' ' .. num(Q.C.now) .. ' ')), r = loaded.r }
      read = read + #blob
    else
      call('HDEL', Q.f, key)   -- the entry was removed by other means
    end
  until scanned == #keys or read >= max_bytes
  return #out, read, { unpack(keys, 1, scanned) }
end

local function gather_new(Q, want, max_bytes, out, up_to)
  local h, got, bytes, last = Q.h, 0, 0, up_to and entry_id(Q, up_to) or '+'
  local ce, ci = h.ce, h.ci
  local start = ce == 0 and '-' or (ci > 0 and entry_id(Q, ce) or '(' .. entry_id(Q, ce))
  local mean = math.max(1, h.bytes / math.max(1, h.len))
  local most = math.floor(max_bytes / mean) + 1
  local limit = math.min(math.ceil(want / PER_ENTRY) + 1, most)
  while got < want and bytes < max_bytes do
    local entries = call('XRANGE', Q.s, start, last, 'COUNT', limit)
    for i = 1, #entries do
      if got >= want or bytes >= max_bytes then break end
      local id, raw = entries[i][1], entries[i][2]     -- as in fields_of
      local number, n, from = number_of(id), tonumber(raw[2]), 0
      if ci > 0 and number == ce then from = ci end
      local k = n - from
      if k > want - got then k = want - got end
      local blob = (from > 0 or k < n) and slice(raw[8], from, k) or raw[8]
      out[#out + 1] = { id = id, n = n, from = from, count = k, t = raw[4], o = raw[6], blob = blob, number = number,
        c = raw[9] == 'c' and raw[10] or nil, r = raw[raw[9] == 'c' and 12 or 10] }
      got, bytes, ce, ci = got + k, bytes + #blob, number, (from + k < n) and from + k or 0
    end
    if #entries < limit then break end
    start = '(' .. entries[#entries][1]
    limit = math.min(want - got, most)
    if limit <= 0 then break end
  end
  if got > 0 then set(Q, 'ce', ce) set(Q, 'ci', ci) end
  return got
end

-- Returns the returned messages, the new ones, and the number of both. up_to: the highest entry number, nil = any
local function gather(Q, want, max_bytes, up_to)
  local back, new = {}, {}
  local ready = Q.h.len - Q.h.leased
  if ready <= 0 then return back, new, 0 end
  want = math.min(want, ready)
  -- sizes of returned messages are unknown before they are read, so read no more than are likely to be taken
  local mean = math.max(1, Q.h.bytes / math.max(1, Q.h.len))
  local step = math.max(1, math.min(want, math.floor(max_bytes / mean)))
  local got, read, gone = gather_returned(Q, step, max_bytes, back, up_to)
  if got < want and read < max_bytes and (got < step or call('ZCARD', Q.r) == #gone) then
    got = got + gather_new(Q, want - got, max_bytes - read, new, up_to)
  end
  if #gone > 0 then call('ZREM', Q.r, unpack(gone)) end   -- after all reads, so that a failure changes nothing
  return back, new, got
end

-- Moves the messages of a gathered piece to the dead letters.
local function kill(Q, piece, reason)
  local mask = shl(ones(piece.count), piece.from)
  for j = 0, piece.count - 1 do
    local h = piece.h
    if not h and piece.c then
      local key = num(piece.number * PER_ENTRY + piece.from + j)
      local record = call('HGET', Q.f, key)
      if record then h = history(record) call('HDEL', Q.f, key) end
    end
    bury(Q, slice(piece.blob, j, 1), piece.t, piece.o, piece.id, reason, h, h and h.err, piece.r)
  end
  leave(Q, piece.id, piece.count, body_bytes(piece.blob, piece.count))
  settle_mask(Q, piece.id, piece.n, mask)
  if piece.key then call('HDEL', Q.f, piece.key) end
end

evict = function(Q, n, bytes)
  local moved = 0
  while moved < STEP do
    local over = Q.limits.length > 0 and Q.h.len + n > Q.limits.length
    local over_bytes = Q.limits.bytes > 0 and Q.h.bytes + bytes > Q.limits.bytes
    if not (over or over_bytes) then return end
    local want = over_bytes and 1 or math.min(n, Q.h.len + n - Q.limits.length)
    local back, new, got = gather(Q, math.min(want, PER_ENTRY), 1)
    if got == 0 then return end
    for i = 1, #back do kill(Q, back[i], 'rejected_full') end
    for i = 1, #new do kill(Q, new[i], 'rejected_full') end
    moved = moved + got
  end
end
