-- Put messages into a queue

-- The id of the next entry; the first of a generation has an explicit number after all former ones.
local function next_id(Q)
  local generation = Q.C.generation
  if string.match(Q.h.gens or '', '(%d+):%d+$') == generation then return generation .. '-*' end
  local first = 1
  if call('EXISTS', Q.s) == 1 then
    local info = call('XINFO', 'STREAM', Q.s)
    for i = 1, #info, 2 do
      if info[i] == 'last-generated-id' then first = number_of(info[i + 1]) + 1 end
    end
  end
  set(Q, 'gens', (Q.h.gens and Q.h.gens ~= '' and Q.h.gens .. ' ' or '') .. generation .. ':' .. num(first))
  Q.single = nil
  return generation .. '-' .. num(first)
end

-- Appends an entry. more: further fields
local function append(Q, n, t, origin, blob, ...)
  local entry = call('XADD', Q.s, Q.appended or next_id(Q), 'n', n, 't', t, 'o', origin, 'b', blob, ...)
  Q.appended, Q.newest = Q.C.generation .. '-*', entry
  if Q.limits.tag and not Q.C.bridged then log_bridge(Q, n, blob) end
  return entry
end

-- Why a reservation excludes this holder, or nil. holder: '' = none, '?x' = x, which needs no reservation, x = x, which must have
-- the reservation.
local function reserved(Q, holder)
  local by = Q.h.holder and Q.h.holder ~= '' and FUNCTIONS.claim(Q.q, 'reserve', Q.C.now).by
  if holder == '' then return by and 'RESERVED' end
  if string.sub(holder, 1, 1) ~= '?' then return by ~= holder and 'NOTHELD' or nil end
  return by and by ~= string.sub(holder, 2) and 'RESERVED' or nil
end

-- Why the queue accepts no messages now, or nil.
local function closed(Q, holder)
  local full = guard(Q.C)
  if full then return full end
  if Q.limits.fsync and not Q.C.keeps then return 'UNKEPT' end
  if Q.limits.paused then return 'PAUSED' end
  if holder ~= '' or Q.h.holder and Q.h.holder ~= '' then return reserved(Q, holder) end
end

-- How many leading records of an entry fit within the bounds, and their octets.
local function room(Q, n, bytes, blob)
  local most, most_bytes = Q.limits.length, Q.limits.bytes
  local left = most > 0 and most - Q.h.len or n
  local left_bytes = most_bytes > 0 and most_bytes - Q.h.bytes or bytes
  if n <= left and bytes <= left_bytes then return n, bytes end
  local fit, sum, p = 0, 0, 1
  while fit < n and fit < left do
    local q = skip(blob, p, 1)
    if sum + q - p - 4 > left_bytes then break end
    sum, fit, p = sum + q - p - 4, fit + 1, q
  end
  return fit, sum
end

local evict

-- The records of an entry before the first that is larger than the whole queue, for which nothing is evicted.
local function admissible(Q, n, bytes, blob)
  if Q.limits.bytes == 0 or bytes <= Q.limits.bytes then return n, bytes end
  local number, sum, p = 0, 0, 1
  while number < n do
    local q = skip(blob, p, 1)
    if q - p - 4 > Q.limits.bytes then break end
    sum, number, p = sum + q - p - 4, number + 1, q
  end
  return number, sum
end

-- Appends the leading records of an entry that fit; returns their number and octets. With eviction it continues in parts, so that
-- the result does not depend on the packing.
local function put(Q, t, origin, n, bytes, blob)
  local fit, fit_bytes = room(Q, n, bytes, blob)
  local done, done_bytes = 0, 0
  repeat
    if fit < n and Q.limits.evict then
      evict(Q, admissible(Q, n, bytes, blob))
      fit, fit_bytes = room(Q, n, bytes, blob)
    end
    if fit > 0 then
      append(Q, fit, t, origin, fit == n and blob or slice(blob, 0, fit))
      Q.h.len, Q.h.bytes = Q.h.len + fit, Q.h.bytes + fit_bytes
      done, done_bytes = done + fit, done_bytes + fit_bytes
    end
    local go_on = fit > 0 and fit < n and Q.limits.evict
    if go_on then
      blob, n, bytes = slice(blob, fit, n - fit), n - fit, bytes - fit_bytes
      fit = 0
    end
  until not go_on
  return done, done_bytes
end

-- Puts the records that are not too large for the peers, with in_order only those before the first that is. Stops at the first
-- record without room. Returns
-- {total, 'LARGE', {number accepted of the others, index of each that is too large...} for each entry}.
local function publish_smaller(Q, origin, A, i, k, in_order)
  local t, total, total_bytes, out, stopped = num(Q.C.now), 0, 0, { 0, 'LARGE' }, false
  for e = 1, k do
    local large, n, bytes, blob = without_too_large(Q, tonumber(A[i]), A[i + 2])
    local fit, fit_bytes, before = 0, 0, n
    if in_order and #large > 0 then before, bytes, blob = first_of(blob, large[1]) end
    if before > 0 and not stopped then fit, fit_bytes = put(Q, t, origin, before, bytes, blob) end
    stopped = stopped or fit < before or in_order and #large > 0
    total, total_bytes = total + fit, total_bytes + fit_bytes
    out[2 + e] = { fit, unpack(large) }
    i = i + 3
  end
  Q.dirty.len, Q.dirty.bytes = true, true
  count(Q, 'added', total)
  count(Q, 'bytes_in', total_bytes)
  out[1] = total
  return out
end

-- Stops at the first record without room, so that the result does not depend on the packing, which tracing changes (tracing.py).
-- in_order: stops at the first record that is refused for any reason.
local function publish(Q, origin, holder, A, i, k, in_order)
  local reason = closed(Q, holder)
  if reason then return { 0, reason } end
  if Q.limits.largest > 0 then
    for e = i, i + 3 * k - 3, 3 do
      if is_too_large(Q, tonumber(A[e]), tonumber(A[e + 1]), A[e + 2]) then
        return publish_smaller(Q, origin, A, i, k, in_order)
      end
    end
  end
  local t, total, total_bytes, partial = num(Q.C.now), 0, 0, nil
  for e = 1, k do
    local n, bytes, blob = tonumber(A[i]), tonumber(A[i + 1]), A[i + 2]
    i = i + 3
    local fit, fit_bytes = 0, 0
    if not partial then fit, fit_bytes = put(Q, t, origin, n, bytes, blob) end
    total, total_bytes = total + fit, total_bytes + fit_bytes
    if fit < n and not partial then
      partial = { 0, 'FULL' }
      for before = 1, e - 1 do partial[2 + before] = tonumber(A[i - 3 * (e - before) - 3]) end
    end
    if partial then partial[2 + e] = fit end
  end
  Q.dirty.len, Q.dirty.bytes = true, true
  count(Q, 'added', total)
  count(Q, 'bytes_in', total_bytes)
  if partial then partial[1] = total return partial end
  return total
end
