--[[ The queue store: every decision about messages is taken here, in one Redis Function a call.

KEYS (all of one transaction domain share the hash tag {dom}, so a domain is one shard)
  ps:{dom}:epoch          "<dataset id>.<generation>": which data this is. A call made for other data is refused.
  ps:{dom}:ses            ZSET session -> last heartbeat (server ms). Who is not in it may not work.
  ps:{dom}:dying          ZSET session -> last heartbeat: timed out, fenced, its lots wait to be swept
  ps:{dom}:lane:<session> hash: n = last sequence, 0..63 = ring of the last replies (msgpack), replayed when asked again
  ps:{dom}:lots:<session> SET "<qid> <lot>": what the session holds
  ps:{dom}:tx:<id>        outcome of a commit, kept so that the same id is never applied twice
  ps:{dom}:fate:<token>   what became of a message that somebody waits for: waits | settled <session> |
                          dead <id> <reason> | emptied; expires when nobody asks any more
  ps:{dom}:emptied:<run>  hash: what a run that empties a queue has removed, and until which entry it means (empty.lua); expires
  ps:{dom}:r:<request>    what came of a request of a ring (see requests.lua), kept so that it is done once
  ps:{dom}:j:<journal>    the highest number of this journal that was applied; kept for ever
  ps:{dom}:state          hash: when the last sweep ran and since when the store has been up
  ps:{dom}:<qid>:s        stream of entries <generation>-<number>, up to 32 messages each:
                          n = count, t = server ms, o = origin, b = records, c = 1 if it was returned to the end,
                          r = how often it was brought back from the dead, alone in its entry
  ps:{dom}:<qid>:q        queue hash: limits, cursor (ce, ci), lot number, counters (see FIELDS); who has it reserved
                          (holder, until, fence, ttl = its length in ms; freed, freed_by, served = when it was free again, and whose question was answered), who serves it (own, own_until, own_fence, own_ttl), condition = what is wrong; watched = how many
                          w:<entry number> = fate keys of messages that somebody waits for, each alone in its entry;
                          declared = how often its document was brought here, so that who deletes it sees whether one came meanwhile;
                          sampled = "<server ms> <digest>" of the last sample of it, "0 <server ms when it was made>": none yet (samples.lua)
                          heavy_dead = id of a dead letter behind which none has more than 16 KiB: the last of those, or the first that
                          died since there is this field, so not there = nothing is known (redrive.lua);
                          redrive:<run> = how many letters a redrive under way has moved (redrive.lua)
  ps:{dom}:<qid>:l        lots: number -> "<session> <left> <kind> <rest>"
                          F e1 i1 e2 i2 = a range taken for the first time; H = the same, but some messages of it have
                          a record in f; R p p p = redelivered messages at these positions
  ps:{dom}:<qid>:r        ZSET of returned messages, member = score = position = number * 32 + index: their old place
  ps:{dom}:<qid>:f        position -> "<lot> <acquired> <failed> <first ms> <last ms>[;<note>] <error>", only of messages
                          that are redelivered or have a note; lot 0 = waiting in r (or at the end of the stream)
  ps:{dom}:<qid>:m        entry -> mask of settled messages, for partly settled entries only
  ps:{dom}:<qid>:x        entry -> msgpack {n, t, o, b, c, r}: old, mostly settled entries, without the settled bodies
  ps:{dom}:<qid>:d        dead letters, a stream with one message an entry and plain named fields
  ps:{dom}:dead:traced    which process reads new dead letters to trace them (dead_spans.py); expires
  ps:{dom}:samples        stream of what edges and upkeep tell of their work, capped, plain named fields (samples.lua)
  ps:{dom}:log:s          the text service's log, a stream of entries <era>-<messages in the log up to here>; an era has
                          up to a MiB of lines, or one line that is longer:
                          n = messages, t = server ms, o = "<store> <incarnation>", f = number of the first one,
                          x = 1 if it came from a queue, b = lines "SEND <tag> <message>\n"
  ps:{dom}:log:h          hash: store, server, inc, era = whose numbers are given out; next, serial, bytes = of memory that
                          the entries take (see weight), era_bytes = of lines in this era, trimmed = id of the last one
                          trimmed; level, retention, max_bytes; bindings = version of log:b; counters
  ps:{dom}:log:held       hash: "<store> <incarnation>" -> numbers that came, "1-100+105-200" (of our own: older ones)
  ps:{dom}:log:gone       the same: numbers that are trimmed, or that no neighbour had any more
  ps:{dom}:log:base       hash: neighbour's store -> what it held when the link was first set up: never asked for
  ps:{dom}:log:seen       hash: neighbour's store -> "<its incarnation> <place in its log>": all before it was sent to us
  ps:{dom}:log:b          hash: qid -> JSON {patterns, level}: queues that subscribe to the log
  ps:{dom}:log:link:<store>  who follows that neighbour for all edges of this store; expires
  ps:{registry}:queues    hash: name -> JSON {qid, domain, owner, spec, numbers}
  ps:{registry}:numbers   hash: "rqp-mca 7", "ring-inbox 7" -> name of the queue known by this number; "to rqp-mca 7 at <peer>"
                          -> name of the transmission queue that leads there, * = at all peers
  ps:{registry}:remotes   SET of the names of queues that lead to other systems
  ps:{registry}:peers     hash: name -> JSON, the spec of a Peer document
  ps:{registry}:ring_nodes  hash: "<group> <name>" -> "<server ms> <JSON>", what the nodes of rings say of themselves
  ps:{registry}:processes  hash: name -> "<server ms> <JSON>", the processes that run, as they say themselves (presence.py)
  ps:{registry}:jobs      hash: id of a console's job -> "<server ms> <JSON>", "end <id>" where somebody wants it to end (job_board.py)
  ps:{registry}:report    "<server ms> <JSON>": the last report of the analytics job, and when its run was planned
  ps:{registry}:audit     stream, capped: who changed what by way of the console (audit.py)
  ps:{registry}:audit_minor  stream, capped: the same, of what was refused and what happens all the time
  ps:{registry}:r:<request>  what a request to make or delete a queue was answered; expires
  ps:{registry}:domains   hash: domain -> new | ready
  ps:{registry}:ids       the last queue id given out
  ps:{registry}:cast_ids  "<server> <last>": the last id of a message that was given out, and by which server (ids.lua)
  ps:{registry}:promises  JSON: what this store was found to be able to promise (probe.py)

A RECORD is u8 flags | u24 length | [u16 length, msgpack attributes, if flag 1] | body.
A message is at a POSITION (entry number * 32 + index in the entry). It is exactly one of: ahead of the cursor,
in r, in a lot, or settled (its mask bit is set, or its entry is gone).

Every function validates completely before its first write: Lua has no rollback. ]]

local RING = 64
local PER_ENTRY = 32
local STEP = 1000          -- messages one call may move on its own account (expiry, eviction, sweeping)
local GUARD_MS = 5
local GUARD = 0.75         -- publishes are refused above this share of maxmemory
local FUNCTIONS = {}       -- what exports.lua offers of files that stand in blocks of their own (library.py)
local call, bor, band, shl, tobit

-- redis.call and bit do not exist while the library is loaded: every function fetches them first.
local function begin()
  call = redis.call
  bor, band, shl, tobit = bit.bor, bit.band, bit.lshift, bit.tobit
end

-- A number as Redis takes it: decimal digits. Redis and '..' write numbers over 1e14 with an exponent, '%.0f' writes -0 for
-- what rounds to 0 from below, and HINCRBY refuses both.
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

-- A command over very many members: unpack fails at 8,000 values.
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

-- Answers err, or the stored reply if this sequence was already done, or nothing: then go on.
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

-- Why the server itself should get no more messages now, or false; C.keeps = it has an append-only file, C.memory =
-- maxmemory. INFO costs as much as 40 messages, so its answer serves for some milliseconds.
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
