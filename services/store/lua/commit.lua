-- Commit changes of several queues, all or nothing

local function refuse(reason, part) return { 'FAILED', reason, part } end

-- Parses parts: (queue, acks, holder, publishes).
local function parse_parts(A, i, number)
  local parts = {}
  for p = 1, number do
    local part = { queue = tonumber(A[i]), acks = {}, origin = A[i + 2], holder = A[i + 3], blobs = {} }
    local k = tonumber(A[i + 1])
    i = i + 4
    for _ = 1, k do
      part.acks[#part.acks + 1] = { A[i], A[i + 1], tonumber(A[i + 2]), tobit(tonumber(A[i + 3])), tonumber(A[i + 4]) }
      i = i + 5
    end
    k = tonumber(A[i])
    i = i + 1
    for _ = 1, k do
      part.blobs[#part.blobs + 1] = { tonumber(A[i]), tonumber(A[i + 1]), A[i + 2] }
      i = i + 3
    end
    parts[p] = part
  end
  return parts
end

local function after_parts(A, i, number)
  for _ = 1, number do
    i = i + 4 + 5 * A[i + 1]
    i = i + 1 + 3 * A[i]
  end
  return i
end

-- The sums of all parts of a commit for a queue: masks by entry, messages and octets in and out.
local function totals(Q)
  if not Q.tx then Q.tx = { seen = {}, n = 0, bytes = 0, freed = 0, freed_bytes = 0 } end
  return Q.tx
end

local function check_acks(Q, part)
  local sum = totals(Q)
  for _, a in ipairs(part.acks) do
    local entry, mask = a[2], a[4]
    if band(sum.seen[entry] or 0, mask) ~= 0 then return false end
    sum.seen[entry] = bor(sum.seen[entry] or 0, mask)
    if not holds(Q, a[1], entry, mask) then return false end
    if not load(Q, entry) then return false end
    sum.freed, sum.freed_bytes = sum.freed + popcount(mask), sum.freed_bytes + a[5]
  end
  for _, b in ipairs(part.blobs) do sum.n, sum.bytes = sum.n + b[1], sum.bytes + b[2] end
  return true
end

local function check_room(Q)
  local sum, most, most_bytes = totals(Q), Q.limits.length, Q.limits.bytes
  if sum.n == 0 then return true end
  if Q.limits.evict then
    local kept = Q.h.leased - sum.freed   -- leased messages cannot be evicted
    return (most == 0 or kept + sum.n <= most) and (most_bytes == 0 or sum.bytes <= most_bytes)
  end
  return (most == 0 or Q.h.len - sum.freed + sum.n <= most) and
    (most_bytes == 0 or Q.h.bytes - sum.freed_bytes + sum.bytes <= most_bytes)
end

local function check_part(Q, part)
  if not Q then return 'GONE' end
  if #part.blobs > 0 then
    local reason = closed(Q, part.holder)
    if reason then return reason end
    for _, b in ipairs(part.blobs) do
      if is_too_large(Q, b[1], b[2], b[3]) then return 'LARGE' end
    end
  end
  if not check_acks(Q, part) then return 'FENCED' end
end

-- Returns why the commit is refused, and the refused part; nil if it can be done.
local function check(queues, parts)
  for _, part in ipairs(parts) do
    if queues(part.queue) then queues(part.queue).tx = nil end
  end
  for p, part in ipairs(parts) do
    local reason = check_part(queues(part.queue), part)
    if reason then return reason, p end
  end
  for p, part in ipairs(parts) do
    if #part.blobs > 0 and not check_room(queues(part.queue)) then return 'FULL', p end
  end
end

local function apply_part(Q, part)
  for _, a in ipairs(part.acks) do ack(Q, a[1], a[2], a[3], a[4], a[5]) end
  save_lots(Q)
  local t = num(Q.C.now)
  for _, b in ipairs(part.blobs) do
    if Q.limits.evict then evict(Q, b[1], b[2]) end
    append(Q, b[1], t, part.origin, b[3])
    add(Q, 'len', b[1])
    add(Q, 'bytes', b[2])
    count(Q, 'added', b[1])
    count(Q, 'bytes_in', b[2])
  end
end

-- digest: of the commit's contents, to detect the reuse of its identifier. Returns {DONE}, {AGAIN} if it was applied before, or
-- {FAILED, why, part}.
local function commit(C, queues, key, keep_ms, digest, parts)
  local applied = call('GET', key)
  if applied then
    if digest ~= '' and applied ~= digest then return refuse('DIFFERS', 0) end
    for _, part in ipairs(parts) do
      if queues(part.queue) then count(queues(part.queue), 'duplicates', 1) end
    end
    return { 'AGAIN' }
  end
  local reason, p = check(queues, parts)
  if reason then
    if reason == 'FENCED' then count(queues(parts[p].queue), 'fenced', 1) end
    return refuse(reason, p - 1)
  end
  for _, part in ipairs(parts) do apply_part(queues(part.queue), part) end
  call('SET', key, digest, 'PX', keep_ms)
  return { 'DONE' }
end

-- Puts one message, alone in its entry, with a key that tracks it. A[i] = origin, n, bytes, record. Returns as commit.
local function publish_watched(C, Q, key, keep_ms, A, i)
  if not Q then return refuse('GONE', 0) end
  local done = publish(Q, A[i], '', A, i + 1, 1)
  if type(done) == 'table' then return refuse(done[2], 0) end
  call('SET', key, 'waits', 'PX', keep_ms)
  delivery_tracking.watch(Q, Q.newest, key)
  return { 'DONE' }
end

-- Puts one message under a journal number, unless the same or a higher number was applied before.
-- A[i] = origin, reason ('' = into the queue, else to the dead letters), error, n, bytes, record. Returns as commit.
local function numbered(C, Q, key, number, A, i)
  if number <= tonumber(call('GET', key) or 0) then
    if Q then count(Q, 'duplicates', 1) end
    return { 'AGAIN' }
  end
  if not Q then return refuse('GONE', 0) end
  if A[i + 1] ~= '' then
    bury(Q, A[i + 5], num(C.now), A[i], '', A[i + 1], nil, A[i + 2])
  else
    local done = publish(Q, A[i], '', A, i + 3, 1)
    if type(done) == 'table' then return refuse(done[2], 0) end
  end
  call('SET', key, num(number))
  return { 'DONE' }
end
