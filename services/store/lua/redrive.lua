-- Dead letters: redrive and purge

local function encode_record(body, attributes)
  local length = #body + (attributes and #attributes + 2 or 0)
  local head = string.char(attributes and 1 or 0, math.floor(length / 65536), math.floor(length / 256) % 256, length % 256)
  if not attributes then return head .. body end
  return head .. string.char(math.floor(#attributes / 256), #attributes % 256) .. attributes .. body
end

-- KEYS epoch, 8 of the source, 8 of the target; ARGV epoch wake-channel id ...
-- Each dead letter is a message of the target in the same step, or stays. Answers {moved, missing, reason it stopped}.
FUNCTIONS.redrive = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local C = { now = now_ms(), generation = generation_of(A[1]), wake = A[2], bridged = true }
  local source = open_queue(C, K, 2)
  local target = source
  if K[3] ~= K[11] then target = open_queue(C, K, 10) end
  if not source or not target then return 'GONE' end
  local moved, missing, reason = 0, 0, closed(target, '') or ''
  for i = 3, #A do
    if reason ~= '' then break end
    local raw = call('XRANGE', source.d, A[i], A[i])[1]
    if not raw then
      missing = missing + 1
    else
      local e = {}
      for j = 1, #raw[2], 2 do e[raw[2][j]] = raw[2][j + 1] end
      local record = encode_record(e.body, e.attributes)
      if is_too_large(target, 1, #record - 4, record) then reason = 'LARGE' break end
      if room(target, 1, #record - 4, record) < 1 then reason = 'FULL' break end
      append(target, 1, num(C.now), e.origin, record)
      call('XDEL', source.d, A[i])
      add(target, 'len', 1)
      add(target, 'bytes', #record - 4)
      count(target, 'added', 1)
      count(target, 'bytes_in', #record - 4)
      call('HINCRBY', source.q, 'redriven', 1)
      moved = moved + 1
    end
  end
  close_queue(target)
  return { moved, missing, reason }
end

-- KEYS epoch, q, d; ARGV epoch id ... Answers how many were removed for good.
FUNCTIONS.purge = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local gone = 0
  for i = 2, #A do gone = gone + call('XDEL', K[3], A[i]) end
  if gone > 0 then call('HINCRBY', K[2], 'purged', gone) end
  return gone
end
