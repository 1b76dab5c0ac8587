-- Ids of RQP/cast's messages (rqp_cast.md 2.3)

local MAX_ID = 4294967295
local APART = 268435456  -- 2^28: more than are given out while receivers remember them

-- Where a server begins that goes on after `last` (nil: in a new dataset). Data that went back in time does not know how
-- far the ids had come, and the same copy may be restored twice: so anywhere, but not where this data knows of some.
local function anywhere(last, random)
  if not last then return random % MAX_ID end
  return (last + APART + random % (MAX_ID - 2 * APART)) % MAX_ID
end

-- KEYS epoch cast_ids; ARGV epoch count random(0 to 2^32-1). The first of so many ids, one after the other, never 0.
FUNCTIONS.next_ids = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local server, count = server_of({ now = now_ms() }), tonumber(A[2])
  local by, last = string.match(call('GET', K[2]) or '', '^(%x+) (%d+)$')
  last = tonumber(last)
  if by ~= server then last = anywhere(last, tonumber(A[3])) end
  local first = last + count <= MAX_ID and last + 1 or 1  -- never round the end in the middle
  call('SET', K[2], server .. ' ' .. num(first + count - 1))
  return first
end
