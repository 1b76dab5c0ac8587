-- Find messages that are too large for the peers of a transmission queue (rqp_mca.md 3.1)

-- Octets of a record's body, without its attributes.
local function body_length(record)
  local flags, _, _, _, high, low = string.byte(record, 1, 6)
  return #record - 4 - (band(flags, 1) == 1 and 2 + high * 256 + low or 0)
end

-- Whether an entry has records with bodies that are too large for the queue's peers.
local function is_too_large(Q, n, bytes, blob)
  local largest, p = Q.limits.largest, 1
  if largest == 0 or bytes <= largest then return false end
  for _ = 1, n do
    local q = skip(blob, p, 1)
    if body_length(string.sub(blob, p, q - 1)) > largest then return true end
    p = q
  end
  return false
end

-- The first `n` records of an entry as an entry: n, bytes, blob.
local function first_of(blob, n)
  local first = slice(blob, 0, n)
  return n, body_bytes(first, n), first
end

-- Indexes of an entry's records that are too large, and the others as an entry: n, bytes, blob.
local function without_too_large(Q, n, blob)
  local large, kept = {}, {}
  for index = 0, n - 1 do
    local record = slice(blob, index, 1)
    if body_length(record) > Q.limits.largest then large[#large + 1] = index else kept[#kept + 1] = record end
  end
  local rest = table.concat(kept)
  return large, #kept, #rest - 4 * #kept, rest
end
