-- Purge ready messages of a queue in batches

local OCTETS_MOST = 4 * 1024 * 1024  -- read by one call, plus one message
local KEPT_MS = 3600000              -- a purge is forgotten this long after its last call

-- The newest entry, which later messages follow. The last entry of the stream may be older, as queue_upkeep.lua moves entries before the
-- cursor to x.
local function newest(Q)
  local e = call('XREVRANGE', Q.s, '+', '-', 'COUNT', 1)[1]
  return e and number_of(e[1]) >= Q.h.ce and e[1] or entry_id(Q, Q.h.ce)
end

-- The number of the last entry to purge, from the id of a former newest entry. A store that lost its latest data reuses numbers in
-- a new generation, for later messages.
local function last_of(Q, id)
  local generation, number = string.match(id, '^(%d+)-(%d+)$')
  for g, first in string.gmatch(Q.h.gens or '', '(%d+):(%d+)') do
    if tonumber(g) > tonumber(generation) then return math.min(tonumber(number), tonumber(first) - 1) end
  end
  return tonumber(number)
end

local function discard(Q, piece)
  leave(Q, piece.id, piece.count, body_bytes(piece.blob, piece.count))
  settle_mask(Q, piece.id, piece.n, shl(ones(piece.count), piece.from))
  if piece.key or piece.c then call('HDEL', Q.f, piece.key or num(piece.number * PER_ENTRY + piece.from)) end
  delivery_tracking.report(Q, piece.id, 'emptied')
end

-- KEYS 8 of the queue. Previews a purge: {newest entry, ready messages, leased messages}.
FUNCTIONS.ready = function(K)
  begin()
  local Q = open_queue({ now = now_ms(), generation = '0' }, K, 1)
  return Q and { newest(Q), Q.ready, Q.h.leased } or 'GONE'
end

-- KEYS epoch, 8 of the queue, emptied:<run>; ARGV epoch until('' = all). Removes up to STEP ready or returned messages up to
-- the entry `until`, or up to the newest entry at the first call. Leased messages stay; expired ones become dead letters. Returns
-- {messages, their octets, 1 = there may be more, until} for the whole purge, so a retry after a lost answer is correct. Pass the
-- returned `until` in later calls, or a forgotten purge would include later messages.
FUNCTIONS.empty = on_dataset(function(K, A)
  local C = { now = now_ms(), generation = generation_of(A[1]), session = '' }
  local Q = open_queue(C, K, 2)
  if not Q then return 'GONE' end
  local v = call('HMGET', K[10], 'until', 'messages', 'octets')
  local last = v[1] and last_of(Q, v[1]) or number_of(newest(Q))
  if not v[1] and A[2] ~= '' then last = math.min(last, last_of(Q, A[2])) end
  local till = entry_id(Q, last)
  local back, new, got = gather(Q, STEP, OCTETS_MOST, last)
  if Q.limits.ttl > 0 then back, new = expire(Q, back), expire(Q, new) end
  local messages, octets = 0, 0
  for _, pieces in ipairs({ back, new }) do
    for _, piece in ipairs(pieces) do
      discard(Q, piece)
      messages, octets = messages + piece.count, octets + body_bytes(piece.blob, piece.count)
    end
  end
  count(Q, 'emptied', messages)
  close_queue(Q)
  messages, octets = messages + tonumber(v[2] or 0), octets + tonumber(v[3] or 0)
  call('HSET', K[10], 'until', till, 'messages', num(messages), 'octets', num(octets))
  call('PEXPIRE', K[10], KEPT_MS)
  return { messages, octets, got > 0 and 1 or 0, till }
end)
