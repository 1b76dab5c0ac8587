-- Trim the log (pubsub.md 4.6)

-- KEYS epoch, log:h; ARGV epoch level retention(ms) max-bytes.
local log_declare = on_dataset(function(K, A)
  return call('HSET', K[2], 'level', A[2], 'retention', A[3], 'max_bytes', A[4])
end)

-- The memory bound of the log: at most a quarter of the server's, so that queues still accept messages.
local function log_bound(max_bytes)
  local maxmemory = tonumber(string.match(call('INFO', 'memory'), '\nmaxmemory:(%d+)'))
  if maxmemory == 0 then return max_bytes end
  return math.min(max_bytes, math.floor(maxmemory / 4))
end

-- KEYS epoch log:s log:h log:held log:gone; ARGV epoch. Trims within one era, which bounds the latency of other calls.
-- Returns {messages trimmed, 1 if there may be more}.
local log_trim = on_dataset(function(K, A)
  local C = log_context(K, A)
  local L = open_log(C)
  local v = call('HMGET', K[3], 'retention', 'max_bytes')
  local oldest, bound = C.now - tonumber(v[1] or 86400000), log_bound(tonumber(v[2] or 1073741824))
  -- The newest entry shows followers what they missed, so it stays unless memory is exhausted.
  local function may_go(raw)
    return string.match(raw[1], '%d+$') ~= num(L.serial) or guard(C) == 'MEMORY'
  end
  local function must_go(raw) return tonumber(raw[2][4]) < oldest or L.bytes > bound and may_go(raw) end
  local first_entry = call('XRANGE', K[2], '-', '+', 'COUNT', 1)[1]
  if not first_entry or not must_go(first_entry) then
    -- corrects the size of a log that was emptied by other means
    if not first_entry and L.bytes ~= 0 then call('HSET', K[3], 'bytes', '0') end
    return { 0, 0 }
  end
  local found = call('XRANGE', K[2], '-', string.match(first_entry[1], '%d+'), 'COUNT', STEP)
  local last, gone, seen = nil, 0, 0
  for _, raw in ipairs(found) do
    local e = raw[2]                                     -- n t o f x b, as log_entry wrote them
    if not must_go(raw) then break end
    local n, first = tonumber(e[2]), tonumber(e[8])
    include(numbers_of(L, K[5], e[6]), first, first + n - 1)
    L.bytes, last, gone, seen = math.max(0, L.bytes - weight(e[6], e[12])), raw[1], gone + n, seen + 1
  end
  local era, serial = string.match(last, '(%d+)-(%d+)')
  call('XTRIM', K[2], 'MINID', '=', era .. '-' .. num(tonumber(serial) + 1))
  call('HSET', K[3], 'trimmed', last)
  save_place(L)
  tally(L, 'trimmed_messages', gone)
  close_log(C)
  return { gone, seen == #found and 1 or 0 }
end)
