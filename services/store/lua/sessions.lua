-- Sessions

-- KEYS epoch ses lane, to close also dying lots; ARGV epoch session open|beat|close. Returns the server's time, ms.
-- Leases of a closed session are swept like those of a dead one.
local session = on_dataset(function(K, A)
  local now = now_ms()
  if A[3] == 'open' then
    call('ZADD', K[2], num(now), A[2])
  elseif not call('ZSCORE', K[2], A[2]) then
    return redis.error_reply('SESSION swept or never opened')
  elseif A[3] == 'beat' then
    call('ZADD', K[2], 'XX', num(now), A[2])
  else
    call('ZREM', K[2], A[2])
    if call('EXISTS', K[5]) == 1 then
      call('ZADD', K[4], '0', A[2])
    else
      call('DEL', K[3])
    end
  end
  return num(now)
end)

-- KEYS epoch ses dying state; ARGV epoch session-timeout(ms) quiet(ms). Fences silent sessions, but not within one
-- timeout after a restart of the store or a step of its clock, as heartbeats were impossible.
-- Returns {now, session, last heartbeat, ...} of all sessions to sweep.
local fence = on_dataset(function(K, A)
  local now, timeout = now_ms(), tonumber(A[2])
  local state = call('HMGET', K[4], 'looked', 'up_since', 'run_id')
  local run_id = string.match(call('INFO', 'server'), '\nrun_id:(%x+)')
  local looked, up_since = tonumber(state[1] or 0), tonumber(state[2] or 0)
  if state[3] ~= run_id or now < looked or now - looked > tonumber(A[3]) then up_since = now end
  CLOCK.heal_scores(K[2], now)
  CLOCK.heal_scores(K[3], now)
  call('HSET', K[4], 'looked', num(now), 'up_since', num(up_since), 'run_id', run_id)
  if now - up_since > timeout then
    local silent = call('ZRANGEBYSCORE', K[2], '-inf', num(now - timeout), 'WITHSCORES', 'LIMIT', 0, STEP)
    for i = 1, #silent, 2 do
      call('ZADD', K[3], silent[i + 1], silent[i])
      call('ZREM', K[2], silent[i])
    end
  end
  local out = { num(now) }
  for _, v in ipairs(call('ZRANGE', K[3], 0, STEP, 'WITHSCORES')) do out[#out + 1] = v end
  return out
end)

-- The messages that a lot still holds, without those that were settled or returned.
local function lot_messages(Q, number)
  local out, pieces = {}, rebuild(Q, number)
  for i = 1, #pieces, 8 do
    for j = 0, pieces[i + 4] - 1 do
      if holds(Q, number, pieces[i + 1], shl(1, pieces[i + 3] + j)) then
        out[#out + 1] = { pieces[i + 1], pieces[i + 3] + j }
      end
    end
  end
  return out
end

-- Returns the messages of a lot to their places; returns {returned, dead, stale}.
local function empty_lot(Q, lot_number, failed, err)
  local args = {}
  for _, m in ipairs(lot_messages(Q, lot_number)) do
    for _, v in ipairs({ lot_number, m[1], num(m[2]), 'front', failed, err }) do args[#args + 1] = v end
  end
  local reply = returns(Q, args, 1, #args / 6)
  local lot = lot_of(Q, lot_number)
  if lot then                      -- all its messages are returned: the rest is a wrong count
    call('HDEL', Q.l, lot_number)
    add(Q, 'leased', -lot.left)
  end
  return reply
end

-- KEYS epoch dying lots lane, 8 of the queue; ARGV epoch session lot wake-channel.
-- Returns one lot of a dead session to its queue, as failed deliveries; those of a sending agent do not count as failed, as it
-- retries without limit (rqp_mca.md 3.1, rqp_cast.md 4). Returns {returned, dead, stale}.
local sweep = on_dataset(function(K, A)
  local C = { held = {}, freed = {}, session = A[2], now = now_ms(), generation = generation_of(A[1]),
    wake = A[4] ~= '' and A[4] or nil }
  if not call('ZSCORE', K[2], A[2]) then return redis.error_reply('SESSION is not dying') end
  local Q = open_queue(C, K, 5)
  local reply = { 0, 0, 0 }
  if Q then
    reply = empty_lot(Q, A[3], Q.limits.remote and '0' or '1', 'the edge that held it died')
    close_queue(Q)
    call('SREM', K[3], Q.h.id .. ' ' .. A[3])
  end
  return reply
end)

-- KEYS epoch lots, 8 of the queue; ARGV epoch session lot fence. Returns one lot to its queue for the queue's owner, whether
-- its session lives or not. Returns the number of messages, or -1 if the fencing token is not that of the latest owner.
FUNCTIONS.reclaim = on_dataset(function(K, A)
  if call('HGET', K[4], 'own_fence') ~= A[4] then return -1 end
  local C = { held = {}, freed = {}, session = A[2], now = now_ms(), generation = generation_of(A[1]) }
  local Q = open_queue(C, K, 3)
  if not Q then return 0 end
  local reply = empty_lot(Q, A[3], '0', '')
  close_queue(Q)
  call('SREM', K[2], Q.h.id .. ' ' .. A[3])
  return reply[1]
end)

-- KEYS epoch dying lots lane; ARGV epoch session. Removes a swept session; its replies are kept for a day.
local bury_session = on_dataset(function(K, A)
  if call('EXISTS', K[3]) == 1 then return 0 end
  call('PEXPIRE', K[4], 86400000)
  return call('ZREM', K[2], A[2])
end)
