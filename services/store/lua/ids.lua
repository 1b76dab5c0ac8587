-- Reserve message ids for RQP/cast (rqp_cast.md 2.3)

local MAX_ID = 4294967295
local APART = 268435456  -- 2^28: more ids than are used while receivers remember them

-- The start for a new server after `last` (nil: a new dataset). A restored copy does not know the latest ids, and may be restored
-- twice, so the start is random, outside of the known ids.
local function anywhere(last, random)
  if not last then return random % MAX_ID end
  return (last + APART + random % (MAX_ID - 2 * APART)) % MAX_ID
end

-- KEYS epoch cast_ids; ARGV epoch count random(0 to 2^32-1). Returns the first of `count` consecutive ids, never 0.
FUNCTIONS.next_ids = on_dataset(function(K, A)
  local server, count = server_of({ now = now_ms() }), tonumber(A[2])
  local by, last = string.match(call('GET', K[2]) or '', '^(%x+) (%d+)$')
  last = tonumber(last)
  if by ~= server then last = anywhere(last, tonumber(A[3])) end
  local first = last + count <= MAX_ID and last + 1 or 1  -- a range never wraps around
  call('SET', K[2], server .. ' ' .. num(first + count - 1))
  return first
end)
