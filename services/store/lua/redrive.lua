-- Dead letters: a look, redrive and purge

local READ_MOST = 4 * 1024 * 1024  -- octets that one call handles; a larger letter is handled alone

-- KEYS d; ARGV start end count octets-of-a-body. Answers {whether there may be more, id, octets of the whole body,
-- fields, ...}: as many as were read, with the bodies' first octets, -1 = all of them.
FUNCTIONS.dead = function(K, A)
  begin()
  local start, most, shown, out, read = A[1], tonumber(A[3]), tonumber(A[4]), { 1 }, 0
  for _ = 1, most do
    local raw = call('XRANGE', K[1], start, A[2], 'COUNT', 1)[1]
    if not raw then
      out[1] = 0
      break
    end
    local fields, size = raw[2], 0
    for j = 1, #fields, 2 do
      read = read + #fields[j + 1]
      if fields[j] == 'body' then
        size = #fields[j + 1]
        if shown >= 0 then fields[j + 1] = string.sub(fields[j + 1], 1, shown) end
      end
    end
    out[#out + 1], out[#out + 2], out[#out + 3] = raw[1], size, fields
    start = '(' .. raw[1]
    if read >= READ_MOST then break end
  end
  return out
end


local function encode_record(body, attributes)
  local length = #body + (attributes and #attributes + 2 or 0)
  local head = string.char(attributes and 1 or 0, math.floor(length / 65536), math.floor(length / 256) % 256, length % 256)
  if not attributes then return head .. body end
  return head .. string.char(math.floor(#attributes / 256), #attributes % 256) .. attributes .. body
end

-- KEYS epoch, 8 of the source, 8 of the target; ARGV epoch wake-channel [run] id ...
-- Each dead letter is a message of the target in the same step, or stays. Answers {moved, missing, reason it stopped};
-- without a reason it may stop, too, when it has moved READ_MOST octets. How many a named run has moved is counted in the
-- source, so that whoever goes on with it after a crash knows.
FUNCTIONS.redrive = function(K, A)
  begin()
  local err = check_epoch(K[1], A[1])
  if err then return err end
  local C = { now = now_ms(), generation = generation_of(A[1]), wake = A[2], bridged = true }
  local source = open_queue(C, K, 2)
  local target = source
  if K[3] ~= K[11] then target = open_queue(C, K, 10) end
  if not source or not target then return 'GONE' end
  local moved, missing, reason, octets = 0, 0, closed(target, '') or '', 0
  local run = A[3] and not string.match(A[3], '^%d+%-%d+$') and A[3]  -- no id: older callers name none
  for i = run and 4 or 3, #A do
    if reason ~= '' or octets >= READ_MOST then break end
    local raw = call('XRANGE', source.d, A[i], A[i])[1]
    if not raw then
      missing = missing + 1
    else
      local e = {}
      for j = 1, #raw[2], 2 do e[raw[2][j]] = raw[2][j + 1] end
      local record = encode_record(e.body, e.attributes)
      if is_too_large(target, 1, #record - 4, record) then reason = 'LARGE' break end
      if room(target, 1, #record - 4, record) < 1 then reason = 'FULL' break end
      append(target, 1, num(C.now), e.origin, record, 'r', num(tonumber(e.redriven or 0) + 1))
      call('XDEL', source.d, A[i])
      add(target, 'len', 1)
      add(target, 'bytes', #record - 4)
      count(target, 'added', 1)
      count(target, 'bytes_in', #record - 4)
      call('HINCRBY', source.q, 'redriven', 1)
      moved, octets = moved + 1, octets + #record
    end
  end
  close_queue(target)
  if run and moved > 0 then call('HINCRBY', source.q, 'redrive:' .. run, moved) end
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
