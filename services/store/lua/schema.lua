--[[ The functions of the queue store: each call makes all its decisions about messages in one Redis Function.

KEYS (all of one transaction domain share the hash tag {dom}, so a domain is one shard)
  ps:{dom}:epoch          "<dataset id>.<generation>". Calls with another epoch are refused.
  ps:{dom}:ses            ZSET session -> last heartbeat (server ms). Calls of other sessions are refused.
  ps:{dom}:dying          ZSET session -> last heartbeat: timed out and fenced; its lots will be swept
  ps:{dom}:lane:<session> hash: n = last sequence, 0..63 = ring of the latest replies (msgpack), for repeated calls
  ps:{dom}:lots:<session> SET "<qid> <lot>": what the session holds
  ps:{dom}:tx:<id>        outcome of a commit, so that an id is applied once
  ps:{dom}:fate:<token>   the result of a tracked message: waits | settled <session> |
                          dead <id> <reason> | emptied; expires if it is not polled
  ps:{dom}:emptied:<run>  hash: the progress of a purge, and the last entry to remove (empty.lua); expires
  ps:{dom}:r:<request>    the result of a ring's request (ring_requests.lua), so that it is done once
  ps:{dom}:j:<journal>    the highest applied number of a journal; kept for ever
  ps:{dom}:state          hash: times of the last sweep and of the store's start
  ps:{dom}:<qid>:s        stream of entries <generation>-<number>, up to 32 messages each:
                          n = count, t = server ms, o = origin, b = records, c = 1 if it was returned to the end,
                          r = number of redrives, alone in its entry
  ps:{dom}:<qid>:q        queue hash: fields that decisions need (FIELDS, queues.lua), as the cursor (ce, ci) and lot number; counters
                          (COUNTERS, catalogue/figures.py); limits, visibility and document (QueueSpec.fields); the reservation
                          (holder, until, fence, ttl = length in ms; freed, freed_by, served = the last release, and whose question
                          was served), the owner (own, own_until, own_fence, own_ttl), condition = a problem of a remote queue;
                          watched = number of tracked messages, w:<entry number> = their fate keys;
                          declared = number of declarations, for conditional deletion;
                          sampled = "<server ms> <digest>" of the last sample, "0 <server ms of creation>" before (samples.lua);
                          heavy_dead = id of a dead letter after which none has more than 16 KiB; missing = unknown (redrive.lua);
                          redrive:<run> = dead letters that a redrive in progress has moved (redrive.lua)
  ps:{dom}:<qid>:l        lots: number -> "<session> <left> <kind> <rest>"
                          F e1 i1 e2 i2 = a range delivered for the first time; H = the same, where some messages
                          have a record in f; R p p p = redelivered messages at these positions
  ps:{dom}:<qid>:r        ZSET of returned messages, member = score = position = number * 32 + index
  ps:{dom}:<qid>:f        position -> "<lot> <acquired> <failed> <first ms> <last ms>[;<note>] <error>", only of messages
                          that are redelivered or have a note; lot 0 = ready in r (or at the end of the stream)
  ps:{dom}:<qid>:m        entry -> mask of settled messages, for partly settled entries
  ps:{dom}:<qid>:x        entry -> msgpack {n, t, o, b, c, r}: old, mostly settled entries without settled bodies
  ps:{dom}:<qid>:d        dead letters, a stream with one message per entry and plain named fields
  ps:{dom}:dead:traced    lease on tracing new dead letters (dead_spans.py); expires
  ps:{dom}:samples        stream of samples of activity, capped, plain named fields (samples.lua)
  ps:{dom}:log:s          the text service's log, a stream of entries <era>-<messages in the log up to here>; an era has
                          up to a MiB of lines, or one line that is longer:
                          n = messages, t = server ms, o = "<store> <incarnation>", f = number of the first one,
                          x = 1 if it came from a queue, b = lines "SEND <tag> <message>\n"
  ps:{dom}:log:h          hash: store, server, inc, era = source of new numbers; next, serial, bytes = memory of the
                          entries (see weight), era_bytes = lines in this era, trimmed = id of the last trimmed
                          entry; level, retention, max_bytes; bindings = version of log:b; counters
  ps:{dom}:log:held       hash: "<store> <incarnation>" -> numbers received, "1-100+105-200" (own: former incarnations)
  ps:{dom}:log:gone       the same: numbers trimmed, or lost at all neighbours
  ps:{dom}:log:base       hash: neighbour's store -> numbers it held when the link was first set up, never requested
  ps:{dom}:log:seen       hash: neighbour's store -> "<its incarnation> <place in its log>": all before it was received
  ps:{dom}:log:b          hash: qid -> JSON {patterns, level} of queues that subscribe to the log
  ps:{dom}:log:link:<store>  lease on following that neighbour for all edges of this store; expires
  ps:{registry}:queues    hash: name -> JSON {qid, domain, owner, spec, numbers}
  ps:{registry}:numbers   hash: "rqp-mca 7", "ring-inbox 7" -> name of the queue with this number; "to rqp-mca 7 at <peer>"
                          -> name of the transmission queue that leads there, * = all peers
  ps:{registry}:remotes   SET of the names of queues that lead to other systems
  ps:{registry}:peers     hash: name -> JSON, the spec of a Peer document
  ps:{registry}:ring_nodes  hash: "<group> <name>" -> "<server ms> <JSON>", states of ring nodes
  ps:{registry}:processes  hash: name -> "<server ms> <JSON>", states of running processes (presence.py)
  ps:{registry}:jobs      hash: id of a console's job -> "<server ms> <JSON>", "end <id>" = request to end it (job_board.py)
  ps:{registry}:report    "<server ms> <JSON>": the last report of the analytics job, and the time its run began
  ps:{registry}:audit     stream, capped: changes made through the console (audit.py)
  ps:{registry}:audit_minor  stream, capped: refused and frequent actions
  ps:{registry}:r:<request>  reply to a ring's request to create or delete a queue; expires
  ps:{registry}:domains   hash: domain -> new | ready
  ps:{registry}:ids       the last queue id
  ps:{registry}:cast_ids  "<server> <last>": the last message id of RQP/cast, and its server (ids.lua)
  ps:{registry}:promises  JSON: durability guarantees found by the last probe (probe.py)

A RECORD is u8 flags | u24 length | [u16 length, msgpack attributes, if flag 1] | body.
A message is at a POSITION (entry number * 32 + index in the entry). It is exactly one of: ahead of the cursor,
in r, in a lot, or settled (its mask bit is set, or its entry is removed).

Every function validates completely before its first write, as Lua has no rollback. ]]

local RING = 64
local PER_ENTRY = 32       -- as in model/records.py
local STEP = 1000          -- messages that one call may expire, evict or sweep
local GUARD_MS = 5
local GUARD = 0.75         -- publishes are refused above this share of maxmemory; as PUBLISH_LIMIT in redis/memory.py
local FUNCTIONS = {}       -- functions shared between files, which are enclosed in blocks (library.py)
local call, bor, band, shl, tobit

-- redis.call and bit do not exist at load time: every function fetches them first.
local function begin()
  call = redis.call
  bor, band, shl, tobit = bit.bor, bit.band, bit.lshift, bit.tobit
end

-- Formats a number as decimal digits for Redis. Redis and '..' write numbers over 1e14 with an exponent, '%.0f' writes -0 for
-- numbers that round to 0 from below, and HINCRBY refuses both.
local function num(x)
  if x - x ~= 0 then error('NUMBER ' .. tostring(x)) end  -- nan, or an infinity
  local text = string.format('%.0f', x)
  return text == '-0' and '0' or text
end

local function number_of(entry) return tonumber(string.sub(entry, string.find(entry, '-', 1, true) + 1)) end

local function ones(count) return count == 32 and -1 or tobit(shl(1, count) - 1) end

local function popcount(mask)
  local c = 0
  while mask ~= 0 do mask = band(mask, mask - 1) c = c + 1 end
  return c
end

-- Calls a command with many members in parts, as unpack fails at 8,000 values.
local function in_parts(command, key, members)
  for i = 1, #members, STEP do call(command, key, unpack(members, i, math.min(i + STEP - 1, #members))) end
end

-- Records

local function skip(blob, p, count)
  local byte = string.byte
  for _ = 1, count do
    local _, b, c, d = byte(blob, p, p + 3)
    p = p + 4 + (b * 256 + c) * 256 + d
  end
  return p
end

local function slice(blob, from, count)
  local p = skip(blob, 1, from)
  return string.sub(blob, p, skip(blob, p, count) - 1)
end

local function body_bytes(blob, count) return #blob - 4 * count end

-- Calls: epoch, session, sequence, deadline

local function dataset_of(epoch) return string.sub(epoch, 1, string.find(epoch, '.', 1, true) - 1) end
local function generation_of(epoch) return string.sub(epoch, string.find(epoch, '.', 1, true) + 1) end

local function check_epoch(key, expected)
  local epoch = call('GET', key)
  if epoch ~= expected then return redis.error_reply('EPOCH ' .. (epoch or 'none')) end
end

-- Wraps a function that is refused for another epoch than K[1] holds.
local function on_dataset(run)
  return function(K, A)
    begin()
    return check_epoch(K[1], A[1]) or run(K, A)
  end
end

-- Returns an error, or nil and the stored reply of a repeated sequence, or nothing to continue.
local function enter(C, K, A)
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local last = tonumber(call('HGET', K[3], 'n') or 0)
  local seq = tonumber(A[3])
  if seq <= last then
    local kept = seq > last - RING and call('HGET', K[3], num(seq % RING))
    if not kept then return redis.error_reply('TOOOLD ' .. num(last)) end
    return nil, cmsgpack.unpack(kept)
  end
  if not call('ZSCORE', K[2], A[2]) then return redis.error_reply('SESSION swept or never opened') end
  if seq ~= last + 1 then return redis.error_reply('GAP ' .. num(last)) end
  C.now, C.session, C.seq = now_ms(), A[2], seq
end

local function remember(K, C, reply)
  call('HSET', K[3], 'n', num(C.seq), num(C.seq % RING), cmsgpack.pack(reply))
end

-- Why the server accepts no more data now, or false; C.keeps = it has an append-only file, C.memory = maxmemory. INFO costs as
-- much as 40 messages, so its reply is cached for some milliseconds.
local guarded, keeps, memory, guarded_at = false, true, 0, 0
local function guard(C)
  local age = C.now - guarded_at
  if C.full == nil and age >= 0 and age < GUARD_MS then C.full, C.keeps, C.memory = guarded, keeps, memory end
  if C.full == nil then
    C.keeps = string.find(call('INFO', 'persistence'), '\naof_enabled:1', 1, true) ~= nil
    local info = call('INFO', 'memory')
    local used = string.match(info, '\nused_memory:(%d+)')
    local max, policy = string.match(info, '\nmaxmemory:(%d+).-\nmaxmemory_policy:([%w-]+)')
    max = tonumber(max)
    C.memory = max
    C.full = policy ~= 'noeviction' and 'EVICTS' or max > 0 and tonumber(used) > GUARD * max and 'MEMORY'
    guarded, keeps, memory, guarded_at = C.full, C.keeps, max, C.now
  end
  return C.full
end
