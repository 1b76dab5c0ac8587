-- The store's clock: this server's wall clock, which may be stepped. What compares a time that was kept with the present
-- does so here (docs/store.md, Clocks).

local now_ms
local CLOCK = {}   -- Lua allows 200 local names at the top
do
  -- A longer time without any call is a step forward, or nothing was asked. By default edges look for dead sessions every
  -- 6 s at the latest, and a claim of 10 s that is renewed at a third of its length outlives a shorter step.
  local GAP_MS = 6500
  local REVIVED_MS = 10000   -- at least; holders renew at a third of the length of a claim, and owners every 5 s at the latest
  local last_ms, gap_from, gap_to = 0, 0, 0

  now_ms = function()
    local t = redis.call('TIME')
    local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
    if last_ms > 0 and now > last_ms + GAP_MS then gap_from, gap_to = last_ms, now end
    last_ms = now
    return now
  end

  -- A time at which something happened. One that is still to come was noted before the clock was stepped back: now, then.
  CLOCK.happened = function(at, now) return math.min(at, now) end

  -- When a claim of `length` ms ends that was to end at `till`: not later than one set now would, and not before its
  -- holder has had the time to renew it after a step forward. A silence of all edges cannot be told from a step, so that
  -- time is bounded; and it is not to be written down, or every silence would prolong the claim of a dead holder.
  CLOCK.ends = function(till, length, now)
    if till > now + length then return now + length end
    if gap_to <= now and till > gap_from then
      local revived = math.min(length, math.max(REVIVED_MS, math.floor(length / 2)))
      return math.max(till, gap_to + revived)
    end
    return till
  end

  -- Scores that were noted before the clock was stepped back count from now.
  CLOCK.heal_scores = function(key, now)
    local score = string.format('%.0f', now)
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. score, '+inf', 'LIMIT', 0, 1000)) do
      redis.call('ZADD', key, score, member)
    end
  end
end
