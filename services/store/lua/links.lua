-- The log's other side: what neighbours have, and who subscribes (pubsub.md 4, 5)

local function log_context(K, A)
  return { held = {}, freed = {}, session = '', now = now_ms(), generation = generation_of(A[1]),
    dataset = dataset_of(A[1]), bridged = true, log_keys = { s = K[2], h = K[3], held = K[4], gone = K[5] } }
end

-- KEYS log:h log:b; answers {version, qid, document, ...}.
local function log_bindings(K)
  begin()
  return { call('HGET', K[1], 'bindings') or '0', call('HGETALL', K[2]) }
end

-- document: '' where the queue subscribes to nothing. A version is never used again, also not after the data went back
-- in time: somebody may still know what it meant.
local function bind(h, b, qid, document)
  local old = call('HGET', b, qid) or ''
  if old == document then return end
  if document == '' then call('HDEL', b, qid) else call('HSET', b, qid, document) end
  call('HSET', h, 'bindings', num(math.max(now_ms(), tonumber(call('HGET', h, 'bindings') or 0) + 1)))
end

-- A copy for a queue that cannot take it goes to its dead letters: a link must not stand still for it (pubsub.md 5.1).
-- Answers the reason it has there, '' if the queue has it, nil if there is no queue.
local function copy_or_bury(Q, origin, record)
  if not Q then return end
  local reason = closed(Q, '') or is_too_large(Q, 1, #record - 4, record) and 'LARGE'
  if not reason and copy_to(Q, origin, record) then return '' end
  local name = reason and 'refused' or 'rejected_full'
  bury(Q, record, num(Q.C.now), origin, '', name, nil, 'a copy of a message from a neighbour: ' .. (reason or 'FULL'))
  return name
end

-- A damaged queue stops neither the link nor the writing down of what was taken. c = {queue, record, number of the copy};
-- C.told gets what became of each that may be traced.
local function copy_if_possible(C, L, queues, origin, c)
  local ok, became = pcall(function() return copy_or_bury(queues(c[1]), origin, c[2]) end)
  if not ok then tally(L, 'copies_lost', 1) return end
  if became and C.told and string.find(c[2], 'traceparent', 1, true) then
    local n = #C.told
    C.told[n + 1], C.told[n + 2] = c[3], became
  end
end

-- The set of numbers of an origin that are here. What claims to be of our own incarnation and was never given out is
-- from before our data went back in time: then we go on under another one.
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

-- Lines that came in one piece, as entries of the usual size.
local function log_block(C, L, origin, first, n, block, bridged)
  local function entry(many, part)
    log_entry(C, L, origin, first, many, part, bridged)
    save_place(L)
    first = first + many
  end
  if #block > LOG_ENTRY then in_blocks(lines_of(block), entry) else entry(n, block) end
end

-- Numbers that come in order are one stretch, over several paths a few. A neighbour whose numbers are scattered over
-- more, or who names ever new origins, would make every step of the store longer for everybody.
local SCATTERED = 1000
local ORIGINS = 10000

-- Whether from..to would be a piece of its own.
local function is_apart(set, from, to)
  for i = 1, #set do
    if set[i][1] <= to + 1 and set[i][2] >= from - 1 then return false end
  end
  return true
end

-- What makes no piece more is always taken: else whoever forged a thousand would shut out the store whose name he used.
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

-- The parts of from..to that the set lacks.
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

-- Numbers that a neighbour does not have any more. They are told to whoever follows us, and taken if somebody else still
-- has them. Answers how many of them are news.
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
-- Answers {accepted, missing, (queue copies octets)...}, or why nothing could be taken. With the last key one list more
-- stands at the end, (copy became)...: of the copies that were made now and may be traced, which ones, counted through
-- all items, and what copy_or_bury said. Older libraries look at no such key.
local function log_accept(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local C = log_context(K, A)
  C.wake, C.told = A[3], K[6 + 8 * A[4]] and {}
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
  close_log(C)   -- first: a damaged queue must not undo what is held
  for q = 1, #list do close_queue(list[q]) end
  if C.scattered then return 'SCATTERED' end
  local out = { accepted, missing }
  for q, Q in pairs(opened) do
    if Q and Q.counts.added then
      local at = #out
      out[at + 1], out[at + 2], out[at + 3] = q, Q.counts.added, Q.counts.bytes_in
    end
  end
  out[#out + 1] = C.told or nil
  return out
end

-- KEYS epoch lease; ARGV epoch holder ttl(ms, 0 = let go). Answers 1 while the holder has it.
local function log_lease(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local holder = call('GET', K[2])
  if holder and holder ~= A[2] then
    if A[3] ~= '0' then call('PEXPIRE', K[2], A[3], 'LT') end   -- the clock may have been stepped back since it was set
    return 0
  end
  if A[3] == '0' then call('DEL', K[2]) return 0 end
  call('SET', K[2], A[2], 'PX', A[3])
  return 1
end

-- KEYS epoch log:s log:h log:held log:gone; ARGV epoch told. Who we are and what we hold, as of this moment. told: the
-- last number of our incarnation that a neighbour holds; if we did not give it out, our data went back in time:
-- {store, incarnation, numbers given out, place behind the last entry, id of the last one trimmed, held pairs, gone pairs}.
local function log_state(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local C = log_context(K, A)
  local L = open_log(C)
  own_incarnation(C, L)
  if tonumber(A[2] or 0) >= L.next then begin_incarnation(C, L, server_of(C)) end
  close_log(C)
  return { L.store, L.inc, num(L.next - 1), head_of(L), call('HGET', K[3], 'trimmed') or '0-0', call('HGETALL', K[4]),
    call('HGETALL', K[5]) }
end
