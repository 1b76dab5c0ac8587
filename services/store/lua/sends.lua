-- SENDs: to the log, and to the queues that subscribed, in one step (pubsub.md 3, 5.1)

-- Why a copy of the message cannot be put into every queue that wants one, or nil. copies = (queue record)*k from A[i].
local function copies_refused(queues, A, i, k)
  for c = 0, k - 1 do
    local Q, record = queues(tonumber(A[i + 2 * c])), A[i + 2 * c + 1]
    if not Q then return 'GONE' end
    local reason = closed(Q, '')
    if reason then return reason end
    local fits = Q.limits.evict and admissible(Q, 1, #record - 4, record) or room(Q, 1, #record - 4, record)
    if fits < 1 then return 'FULL' end
  end
end

local function copy_to(Q, origin, record)
  local n, bytes = put(Q, num(Q.C.now), origin, 1, #record - 4, record)
  Q.dirty.len, Q.dirty.bytes = true, true
  count(Q, 'added', n)
  count(Q, 'bytes_in', bytes)
  return n == 1
end

-- parts = (n block k (queue record)*k)*number from A[i]: lines that no queue wants, or one line and its copies.
-- Answers the number, or {part, why, ...} of those that were refused whole.
local function send(C, queues, L, origin, A, i, number)
  local refused, lines, n, size = {}, {}, 0, 0
  local function flush()
    if n > 0 then log_own(C, L, n, table.concat(lines), false) end
    lines, n, size = {}, 0, 0
  end
  for part = 1, number do
    local many, block, k = tonumber(A[i]), A[i + 1], tonumber(A[i + 2])
    local reason = k > 0 and copies_refused(queues, A, i + 3, k)
    if reason then
      refused[#refused + 1], refused[#refused + 2] = part - 1, reason
    else
      for c = 0, k - 1 do copy_to(queues(tonumber(A[i + 3 + 2 * c])), origin, A[i + 4 + 2 * c]) end
      if n > 0 and size + #block > LOG_ENTRY then flush() end
      lines[#lines + 1], n, size = block, n + many, size + #block
    end
    i = i + 3 + 2 * k
  end
  flush()
  return #refused == 0 and number or refused
end

-- What came over a bridge crosses no other: the copies are not published again.
local function without_bridges(C, work, ...)
  C.bridged = true
  local reply = work(C, ...)
  C.bridged = nil
  return reply
end

-- A[i] = version of the bindings that the copies were made by, origin, number of parts, parts
local function sends(C, queues, A, i)
  local L = open_log(C)
  if L.bindings ~= A[i] then return 'BINDINGS' end
  local reason = log_closed(C, L)
  if reason then return reason end
  return without_bridges(C, send, queues, L, A[i + 1], A, i + 3, tonumber(A[i + 2]))
end

local function after_sends(A, i)
  local number = tonumber(A[i + 2])
  i = i + 3
  for _ = 1, number do i = i + 3 + 2 * A[i + 2] end
  return i
end

local function head_of(L) return num(L.era) .. '-' .. num(L.serial) end
