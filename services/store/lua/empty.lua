-- A queue is emptied: what is ready goes for good, a stretch a call

local OCTETS_MOST = 4 * 1024 * 1024  -- that one call reads, and one message more
local KEPT_MS = 3600000              -- of a run that nobody goes on with

-- The newest entry: what is put in, or goes to the end, from now on stands behind it. The stream's last may be behind the newest
-- that is left: old entries move to x (upkeep.lua), but none beyond the cursor.
local function newest(Q)
  local e = call('XREVRANGE', Q.s, '+', '-', 'COUNT', 1)[1]
  return e and number_of(e[1]) >= Q.h.ce and e[1] or entry_id(Q, Q.h.ce)
end

-- The number of the last entry that is meant by an id that was the newest one once. A store that had lost the last of its data
-- gives numbers out again, under another generation: those are of what came later.
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
  fates.tell(Q, piece.id, 'emptied')
end

-- KEYS 8 of the queue. What an emptying would mean now: {newest entry, messages that are ready, that are leased}.
FUNCTIONS.ready = function(K)
  begin()
  local Q = open_queue({ now = now_ms(), generation = '0' }, K, 1)
  return Q and { newest(Q), Q.ready, Q.h.leased } or 'GONE'
end

-- KEYS epoch, 8 of the queue, emptied:<run>; ARGV epoch until('' = not said). Removes up to STEP of the messages that are ready, or
-- came back, of those that were in the queue when `until` was its newest entry, or the run's first call came; what is leased
-- stays whosever it is. What is over its time dies of that. Answers {messages, their octets, 1 = there may be more, until}, of the
-- whole run: a call that is made again because its answer was lost goes on, and tells the truth. Who goes on says `until` as it
-- was answered: a run that was forgotten meanwhile would mean all that is there by then.
FUNCTIONS.empty = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
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
end
