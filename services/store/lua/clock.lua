-- The store's clock: this server's wall clock, which may be stepped. All comparisons of stored times with the present are here
-- (docs/store.md, Clocks).

local now_ms
local CLOCK = {}   -- Lua allows 200 local names at the top
do
  -- A longer time without calls is a step forward, or all edges were silent. By default edges check for dead sessions at least
  -- every 6 s, and a claim of 10 s, renewed after a third of its length, outlives a shorter step.
  local GAP_MS = 6500
  local REVIVED_MS = 10000   -- at least; holders renew after a third of a claim's length, owners at least every 5 s
  local last_ms, gap_from, gap_to = 0, 0, 0

  now_ms = function()
    local t = redis.call('TIME')
    local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
    if last_ms > 0 and now > last_ms + GAP_MS then gap_from, gap_to = last_ms, now end
    last_ms = now
    return now
  end

  -- The time of a past event. A time in the future was recorded before a step back, and counts as now.
  CLOCK.happened = function(at, now) return math.min(at, now) end

  -- The end of a claim of `length` ms that was to end at `till`: not later than a claim set now, and after a step forward not
  -- before its holder had time to renew it. Silence of all edges looks like a step, so that time is bounded, and it is never
  -- stored, or each silence would prolong the claim of a dead holder.
  CLOCK.ends = function(till, length, now)
    if till > now + length then return now + length end
    if gap_to <= now and till > gap_from then
      local revived = math.min(length, math.max(REVIVED_MS, math.floor(length / 2)))
      return math.max(till, gap_to + revived)
    end
    return till
  end

  -- Sets scores in the future, recorded before a step back, to now.
  CLOCK.heal_scores = function(key, now)
    local score = string.format('%.0f', now)
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. score, '+inf', 'LIMIT', 0, 1000)) do
      redis.call('ZADD', key, score, member)
    end
  end
end
