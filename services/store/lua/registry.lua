-- The registry of queues, domains and peers

-- Replaces the queue's numbers and destinations, and its membership in `remotes`.
local function index_queue(numbers, remotes, name, old, new, leads_elsewhere)
  for _, number in ipairs(old or {}) do call('HDEL', numbers, number) end
  for _, number in ipairs(new) do call('HSET', numbers, number, name) end
  if leads_elsewhere then call('SADD', remotes, name) else call('SREM', remotes, name) end
end

-- The claims of other queues that conflict with a claim: the same number; for a destination, "to rqp-mca 7 at <peer>", the same at
-- that peer or at all peers (*), and for all peers the same at any.
local function conflicts(numbers, claim)
  local there, peer = string.match(claim, '^(to %S+ %d+ at )(%S+)$')
  if not there then return { claim } end
  if peer ~= '*' then return { claim, there .. '*' } end
  local found, cursor = {}, '0'
  repeat
    local page = call('HSCAN', numbers, cursor, 'MATCH', there .. '*', 'COUNT', STEP)
    cursor = page[1]
    for i = 1, #page[2], 2 do found[#found + 1] = page[2][i] end
  until cursor == '0'
  return found
end

-- Returns a conflicting claim and its queue, or nothing. The index counts only if the queue's document has the claim, too, as an
-- older version may have written the index.
local function taken(queues, numbers, claim, name)
  for _, conflict in ipairs(conflicts(numbers, claim)) do
    local by = call('HGET', numbers, conflict)
    local document = by and by ~= name and call('HGET', queues, by)
    for _, its in ipairs(document and cjson.decode(document).numbers or {}) do
      if its == conflict then return conflict, by end
    end
  end
end

-- KEYS epoch queues domains ids numbers remotes; ARGV epoch name owner domain spec(JSON)
-- mode(create|apply|apply <SHA-1 of the document that the caller saw>: CHANGED is returned for another document)
-- remote(0|1) number|destination...
-- Returns {qid, domain, 1 if new, JSON as registered, 1 if the domain is yet to be set up}, or {TAKEN, claim, queue}. A queue stays
-- in its domain: a document with another domain changes nothing.
FUNCTIONS.register = on_dataset(function(K, A)
  local old = call('HGET', K[2], A[2])
  local doc = old and cjson.decode(old)
  local mode, seen = string.match(A[6], '^(%a+) ?(%x*)$')
  if seen ~= '' and redis.sha1hex(old or '') ~= seen then return 'CHANGED' end
  if not doc or mode == 'apply' and doc.domain == A[4] then
    local numbers = { unpack(A, 8) }
    for _, number in ipairs(numbers) do
      local conflict, by = taken(K[2], K[5], number, A[2])
      if conflict then return { 'TAKEN', conflict, by } end
    end
    index_queue(K[5], K[6], A[2], doc and doc.numbers, numbers, A[7] == '1')
    doc = { qid = doc and doc.qid or ('q' .. string.format('%x', call('INCR', K[4]))), domain = A[4],
      owner = A[3], spec = A[5], numbers = #numbers > 0 and numbers or nil }
    call('HSET', K[2], A[2], cjson.encode(doc))
  end
  local fresh = call('HSETNX', K[3], doc.domain, 'new')
  if fresh == 0 and call('HGET', K[3], doc.domain) == 'new' then fresh = 1 end
  return { doc.qid, doc.domain, old and 0 or 1, doc.spec, fresh }
end)

-- KEYS epoch queues numbers remotes; ARGV epoch name qid.
FUNCTIONS.unregister = on_dataset(function(K, A)
  local old = call('HGET', K[2], A[2])
  local doc = old and cjson.decode(old)
  if not doc or doc.qid ~= A[3] then return 0 end
  index_queue(K[3], K[4], A[2], doc.numbers, {}, false)
  return call('HDEL', K[2], A[2])
end)

-- KEYS epoch queues; ARGV epoch name qid old new. Returns 1 if the owner was changed, 0 if `old` is not the owner.
FUNCTIONS.hand_over = on_dataset(function(K, A)
  local old = call('HGET', K[2], A[2])
  local doc = old and cjson.decode(old)
  if not doc or doc.qid ~= A[3] or doc.owner ~= A[4] then return 0 end
  doc.owner = A[5]
  call('HSET', K[2], A[2], cjson.encode(doc))
  return 1
end)

-- Whether the document is not the expected one. seen: SHA-1 of that, '' = none, nil = any.
local function is_other(there, seen)
  return seen and (there and there ~= '' and redis.sha1hex(there) or '') ~= seen
end

-- KEYS epoch peers; ARGV epoch name JSON [seen]. Returns 1 if it is new, 0 if not, or CHANGED.
FUNCTIONS.put_peer = on_dataset(function(K, A)
  if is_other(call('HGET', K[2], A[2]), A[4]) then return 'CHANGED' end
  return call('HSET', K[2], A[2], A[3])
end)

-- KEYS epoch peers; ARGV epoch name [seen]. Returns 1 if it existed, 0 if not, or CHANGED.
FUNCTIONS.drop_peer = on_dataset(function(K, A)
  if is_other(call('HGET', K[2], A[2]), A[3]) then return 'CHANGED' end
  return call('HDEL', K[2], A[2])
end)

-- Stores the state of a member with the server's time, and removes members that were silent for longer than `keep` ms.
local function store_state(board, member, text, keep)
  local now, all = now_ms(), call('HGETALL', board)
  for i = 1, #all, 2 do
    local digits, rest = string.match(all[i + 1], '^(%d+)(.*)$')
    local at = tonumber(digits or 0)
    if at < now - keep then
      call('HDEL', board, all[i])
    elseif CLOCK.happened(at, now) < at then
      call('HSET', board, all[i], num(now) .. rest)
    end
  end
  return call('HSET', board, member, num(now) .. ' ' .. text)
end

-- KEYS epoch ring_nodes; ARGV epoch field JSON keep(ms). Stores the state of a ring node.
FUNCTIONS.ring_node = on_dataset(function(K, A)
  return store_state(K[2], A[2], A[3], A[4])
end)

-- KEYS processes, or jobs; ARGV name JSON keep(ms). Stores the state of a process or job; it is independent of the dataset,
-- so there is no epoch.
FUNCTIONS.process = function(K, A)
  begin()
  return store_state(K[1], A[1], A[2], A[3])
end

local REPORT_AHEAD_MS = 3600000

-- KEYS report; ARGV now(ms) JSON. Stores the report of the analytics job; returns 0 if there is a later one, unless that is in the future
-- because of a wrong clock.
FUNCTIONS.put_report = function(K, A)
  begin()
  local there = tonumber(string.match(call('GET', K[1]) or '', '^%d+') or 0)
  if there > tonumber(A[1]) and there <= now_ms() + REPORT_AHEAD_MS then return 0 end
  call('SET', K[1], A[1] .. ' ' .. A[2])
  return 1
end

-- KEYS epoch; ARGV old(may be '') new. Compares and sets the epoch: a new dataset, or a new generation.
FUNCTIONS.set_epoch = function(K, A)
  begin()
  local epoch = call('GET', K[1]) or ''
  if epoch ~= A[1] then return redis.error_reply('EPOCH ' .. (epoch == '' and 'none' or epoch)) end
  call('SET', K[1], A[2])
  return A[2]
end
