-- Links to neighbours, and queues that subscribe to the log (pubsub.md 4, 5)

local function log_context(K, A)
  return { held = {}, freed = {}, session = '', now = now_ms(), generation = generation_of(A[1]),
    dataset = dataset_of(A[1]), bridged = true, log_keys = { s = K[2], h = K[3], held = K[4], gone = K[5] } }
end

-- KEYS log:h log:b; returns {version, {qid, document, ...}}.
local function log_bindings(K)
  begin()
  return { call('HGET', K[1], 'bindings') or '0', call('HGETALL', K[2]) }
end

-- Stores the subscription of a queue. document: '' = none. Versions are never reused, even after a restore of older data, as edges
-- may have cached them.
local function bind(h, b, qid, document)
  local old = call('HGET', b, qid) or ''
  if old == document then return end
  if document == '' then call('HDEL', b, qid) else call('HSET', b, qid, document) end
  call('HSET', h, 'bindings', num(math.max(now_ms(), tonumber(call('HGET', h, 'bindings') or 0) + 1)))
end

-- Puts a copy into a queue, or into its dead letters if it is refused, so that the link is not blocked (pubsub.md 5.1). Returns the
-- reason of the dead letter, '' if the queue has it, nil if there is no queue.
local function copy_or_bury(Q, origin, record)
  if not Q then return end
  local reason = closed(Q, '') or is_too_large(Q, 1, #record - 4, record) and 'LARGE'
  if not reason and copy_to(Q, origin, record) then return '' end
  local name = reason and 'refused' or 'rejected_full'
  bury(Q, record, num(Q.C.now), origin, '', name, nil, 'a copy of a message from a neighbour: ' .. (reason or 'FULL'))
  return name
end

-- Puts a copy; failures of a damaged queue only count as lost. c = {queue, record, number of the copy}; C.results gets the result of
-- each copy that may be traced.
local function copy_if_possible(C, L, queues, origin, c)
  local ok, became = pcall(function() return copy_or_bury(queues(c[1]), origin, c[2]) end)
  if not ok then tally(L, 'copies_lost', 1) return end
  if became and C.results and string.find(c[2], 'traceparent', 1, true) then
    local n = #C.results
    C.results[n + 1], C.results[n + 2] = c[3], became
  end
end

-- The set of numbers of an origin that are here. Unknown numbers of our own incarnation show that older data was restored: then a
-- new incarnation begins.
local function held_of(C, L, store, inc, to)
  if store == L.store and inc == L.inc then
    if to < L.next then return nil end
    begin_incarnation(C, L, server_of(C))
  end
  return numbers_of(L, L.keys.held, store .. ' ' .. inc)
end

local function lines_of(block)
  local out = {}
  for line in string.gmatch(block, '[^\n]*\n') do out[#out + 1] = line end
  return out
end

-- Appends lines that arrived in one block, as entries of the usual size.
local function log_block(C, L, origin, first, n, block, bridged)
  local function entry(many, part)
    log_entry(C, L, origin, first, many, part, bridged)
    save_place(L)
    first = first + many
  end
  if #block > LOG_ENTRY then in_blocks(lines_of(block), entry) else entry(n, block) end
end

-- Numbers usually form one interval, over several paths a few. Neighbours whose numbers form more intervals or origins than these
-- are refused, as they would slow down every call.
local SCATTERED = 1000
local ORIGINS = 10000

-- Whether from..to would be a separate interval.
local function is_apart(set, from, to)
  for i = 1, #set do
    if set[i][1] <= to + 1 and set[i][2] >= from - 1 then return false end
  end
  return true
end

-- Numbers that extend an interval are always accepted; otherwise forged intervals could exclude the store that they name.
local function scattered(C, set, from, to)
  if set and (#set >= SCATTERED and is_apart(set, from, to) or #set == 0 and call('HLEN', set.key) >= ORIGINS) then
    C.scattered = true
  end
  return C.scattered
end

-- Lines of one origin with consecutive numbers; copies[index] = list of {queue, record}.
local function accept_lines(C, L, queues, e)
  local held = held_of(C, L, e.store, e.inc, e.first + e.n - 1)
  if scattered(C, held, e.first, e.first + e.n - 1) then return 0 end
  local state = held and included(held, e.first, e.first + e.n - 1) or 'all'
  if state == 'all' then tally(L, 'skipped', e.n) return 0 end
  local origin, taken = e.store .. ' ' .. e.inc, 0
  local function take_part(from, n, block)
    log_block(C, L, origin, e.first + from, n, block, e.bridged)
    include(held, e.first + from, e.first + from + n - 1)
    tally(L, 'gaps', -exclude(numbers_of(L, L.keys.gone, origin), e.first + from, e.first + from + n - 1))
    for index = from, from + n - 1 do
      for _, c in ipairs(e.copies[index] or {}) do copy_if_possible(C, L, queues, 'text ' .. e.store, c) end
    end
    taken = taken + n
  end
  if state == 'none' then
    take_part(0, e.n, e.block)
  else
    for index, line in ipairs(lines_of(e.block)) do
      if included(held, e.first + index - 1, e.first + index - 1) == 'none' then take_part(index - 1, 1, line) end
    end
    tally(L, 'skipped', e.n - taken)
  end
  tally(L, 'accepted', taken)
  return taken
end

-- The parts of from..to that are not in the set.
local function lacking(set, from, to)
  local out = {}
  for i = 1, #set do
    if set[i][2] >= from and set[i][1] <= to then
      if set[i][1] > from then out[#out + 1] = { from, set[i][1] - 1 } end
      from = set[i][2] + 1
    end
  end
  if from <= to then out[#out + 1] = { from, to } end
  return out
end

-- Records numbers that a neighbour no longer has. Followers of this store are informed, and the numbers are still accepted from
-- others. Returns how many of them are new.
local function accept_gap(C, L, store, inc, from, to)
  local held, missing = held_of(C, L, store, inc, to), 0
  local gone = held and numbers_of(L, L.keys.gone, store .. ' ' .. inc)
  for _, part in ipairs(held and lacking(held, from, to) or {}) do
    for _, fresh in ipairs(lacking(gone, part[1], part[2])) do
      if not scattered(C, gone, fresh[1], fresh[2]) then
        include(gone, fresh[1], fresh[2])
        missing = missing + fresh[2] - fresh[1] + 1
      end
    end
  end
  tally(L, 'gaps', missing)
  return missing
end

-- KEYS epoch log:s log:h log:held log:gone, 8 a queue, [epoch again]. ARGV epoch bindings wake-channel queues, then items:
--   E store inc first n bridged block k (index queue record)*k    G store inc from to
-- Returns {accepted, missing, (queue copies octets)...}, or why nothing was accepted. With the last key a list (copy result)... is
-- added for the copies that may be traced: their numbers through all items, and the results of copy_or_bury. Older libraries ignore
-- that key.
local log_accept = on_dataset(function(K, A)
  local C = log_context(K, A)
  C.wake, C.results = A[3], K[6 + 8 * A[4]] and {}
  local L, opened, list = open_log(C), {}, {}
  if L.bindings ~= A[2] then return 'BINDINGS' end
  local reason = log_closed(C, L)
  if reason then return reason end
  own_incarnation(C, L)
  local function queues(q)
    if opened[q] == nil then
      opened[q] = open_queue(C, K, 6 + 8 * q) or false
      if opened[q] then list[#list + 1] = opened[q] end
    end
    return opened[q] or nil
  end
  local accepted, missing, copies, i = 0, 0, 0, 5
  while A[i] and not C.scattered do
    if A[i] == 'G' then
      missing = missing + accept_gap(C, L, A[i + 1], A[i + 2], tonumber(A[i + 3]), tonumber(A[i + 4]))
      i = i + 5
    else
      local e = { store = A[i + 1], inc = A[i + 2], first = tonumber(A[i + 3]), n = tonumber(A[i + 4]),
        bridged = A[i + 5] == '1', block = A[i + 6], copies = {} }
      local k = tonumber(A[i + 7])
      i = i + 8
      for _ = 1, k do
        local index = tonumber(A[i])
        e.copies[index] = e.copies[index] or {}
        table.insert(e.copies[index], { tonumber(A[i + 1]), A[i + 2], copies })
        copies, i = copies + 1, i + 3
      end
      accepted = accepted + accept_lines(C, L, queues, e)
    end
  end
  close_log(C)   -- first, so that a damaged queue does not prevent it
  for q = 1, #list do close_queue(list[q]) end
  if C.scattered then return 'SCATTERED' end
  local out = { accepted, missing }
  for q, Q in pairs(opened) do
    if Q and Q.counts.added then
      local at = #out
      out[at + 1], out[at + 2], out[at + 3] = q, Q.counts.added, Q.counts.bytes_in
    end
  end
  out[#out + 1] = C.results or nil
  return out
end)

-- KEYS epoch lease; ARGV epoch holder ttl(ms, 0 = release). Returns 1 while the holder has the lease.
local log_lease = on_dataset(function(K, A)
  local holder = call('GET', K[2])
  if holder and holder ~= A[2] then
    if A[3] ~= '0' then call('PEXPIRE', K[2], A[3], 'LT') end   -- the clock may have been stepped back meanwhile
    return 0
  end
  if A[3] == '0' then call('DEL', K[2]) return 0 end
  call('SET', K[2], A[2], 'PX', A[3])
  return 1
end)

-- KEYS epoch log:s log:h log:held log:gone; ARGV epoch known. Returns the state of the log. known: the last number of this
-- incarnation that a neighbour holds; if it is unknown, older data was restored, and a new incarnation begins. Returns
-- {store, incarnation, last number, place of the last entry, id of the last trimmed entry, held pairs, gone pairs}.
local log_state = on_dataset(function(K, A)
  local C = log_context(K, A)
  local L = open_log(C)
  own_incarnation(C, L)
  if tonumber(A[2] or 0) >= L.next then begin_incarnation(C, L, server_of(C)) end
  close_log(C)
  return { L.store, L.inc, num(L.next - 1), head_of(L), call('HGET', K[3], 'trimmed') or '0-0', call('HGETALL', K[4]),
    call('HGETALL', K[5]) }
end)
