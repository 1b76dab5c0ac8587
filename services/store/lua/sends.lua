-- Append SENDs to the log and to the queues that subscribe, in one step (pubsub.md 3, 5.1)

-- Why a queue cannot accept a copy, or nil, as far as that can be determined without a change.
local function copy_refused(Q, record)
  if not Q then return 'GONE' end
  local reason = closed(Q, '')
  if reason then return reason end
  if is_too_large(Q, 1, #record - 4, record) then return 'LARGE' end
  if not Q.checked then Q.checked = call('XLEN', Q.s) end   -- a damaged queue fails here, before the first write
  local fits
  if Q.limits.evict then   -- leased messages cannot be evicted
    fits = (Q.limits.length == 0 or Q.h.leased < Q.limits.length) and admissible(Q, 1, #record - 4, record)
  else
    fits = room(Q, 1, #record - 4, record)
  end
  if not fits or fits < 1 then return 'FULL' end
end

-- Why a message cannot be copied to all its queues, or nil: then all of them have room, after evictions. copies = (queue record)*k from A[i].
local function copies_refused(queues, A, i, k)
  for c = i, i + 2 * k - 2, 2 do
    local reason = copy_refused(queues(tonumber(A[c])), A[c + 1])
    if reason then return reason end
  end
  for c = i, i + 2 * k - 2, 2 do
    local Q, record = queues(tonumber(A[c])), A[c + 1]
    if Q.limits.evict then evict(Q, 1, #record - 4) end
    if room(Q, 1, #record - 4, record) < 1 then return 'FULL' end
  end
end

local function copy_to(Q, origin, record)
  local n, bytes = put(Q, num(Q.C.now), origin, 1, #record - 4, record)
  Q.dirty.len, Q.dirty.bytes = true, true
  count(Q, 'added', n)
  count(Q, 'bytes_in', bytes)
  return n == 1
end

-- Puts all copies of a message, or returns why none; a damaged queue only fails this message, not others in the call.
local function copy_to_all(queues, origin, A, i, k)
  local ok, reason = pcall(function()
    local refused = copies_refused(queues, A, i, k)
    if refused then return refused end
    for c = i, i + 2 * k - 2, 2 do copy_to(queues(tonumber(A[c])), origin, A[c + 1]) end
  end)
  return ok and reason or not ok and 'FAULT ' .. tostring(type(reason) == 'table' and reason.err or reason) or nil
end

-- parts = (n block k (queue record)*k)*number from A[i]: lines without copies, or one line and its copies. Returns the number, or
-- {part, why, ...} of the refused parts.
local function send(C, queues, L, origin, A, i, number)
  local refused, lines, n, size = {}, {}, 0, 0
  local function flush()
    if n > 0 then log_own(C, L, n, table.concat(lines), false) end
    lines, n, size = {}, 0, 0
  end
  for part = 1, number do
    local many, block, k = tonumber(A[i]), A[i + 1], tonumber(A[i + 2])
    local reason = k > 0 and copy_to_all(queues, origin, A, i + 3, k)
    if reason then
      refused[#refused + 1], refused[#refused + 2] = part - 1, reason
    else
      if n > 0 and size + #block > LOG_ENTRY then flush() end
      lines[#lines + 1], n, size = block, n + many, size + #block
    end
    i = i + 3 + 2 * k
  end
  flush()
  return #refused == 0 and number or refused
end

-- Runs `work` without bridges: copies from the log are not published again.
local function without_bridges(C, work, ...)
  C.bridged = true
  local ok, reply = pcall(work, C, ...)
  C.bridged = nil   -- also after an error, as other publishes may follow in the same call
  if not ok then error(reply, 0) end
  return reply
end

-- A[i] = version of the bindings that determined the copies, origin, number of parts, parts
local function sends(C, queues, A, i)
  local L = open_log(C)
  if L.bindings ~= A[i] then return 'BINDINGS' end
  local reason = log_closed(C, L)
  if reason then return reason end
  call('XLEN', L.keys.s)   -- a damaged log fails here, before the first copy
  return without_bridges(C, send, queues, L, A[i + 1], A, i + 3, tonumber(A[i + 2]))
end

local function after_sends(A, i)
  local number = tonumber(A[i + 2])
  i = i + 3
  for _ = 1, number do i = i + 3 + 2 * A[i + 2] end
  return i
end

local function head_of(L) return num(L.era) .. '-' .. num(L.serial) end
