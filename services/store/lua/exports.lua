-- Register the functions of the library

-- `pairs`, `ipairs` and `string` do not exist at load time. Only functions that add data may fail at maxmemory; the combined call also carries settles,
-- so it refuses its publishes itself (see guard).
local function offer(name, callback, flags)
  redis.register_function({ function_name = 'ps1_' .. name, callback = callback, flags = flags })
end
local function offer_all(names, flags)
  for i = 1, #names do offer(names[i], FUNCTIONS[names[i]], flags) end
end
offer('work', work, { 'allow-oom' })
offer('session', session, { 'allow-oom' })
offer('fence', fence, { 'allow-oom' })
offer('sweep', sweep, { 'allow-oom' })
offer('bury_session', bury_session, { 'allow-oom' })
offer('log_trim', log_trim, { 'allow-oom' })
offer('log_lease', log_lease, { 'allow-oom' })
offer('log_state', log_state, { 'allow-oom' })
offer('log_accept', log_accept, {})
offer('log_declare', log_declare, {})
offer('log_bindings', log_bindings, { 'no-writes' })
-- `available` adjusts a claim after a step of the clock
offer_all({ 'upkeep', 'delete', 'own', 'disown', 'reclaim', 'set_condition', 'release', 'reserve', 'available', 'purge', 'empty',
  'unregister', 'hand_over', 'drop_peer', 'ring_node', 'process', 'sample', 'next_ids' }, { 'allow-oom' })
offer_all({ 'declare', 'redrive', 'register', 'put_peer', 'put_report', 'set_epoch' }, {})
offer_all({ 'stats', 'stats_of', 'peek', 'ready', 'dead' }, { 'no-writes' })
-- As `work`, with the store's time as the last reply. It is a separate function, so that an older library refuses a newer process
-- before anything is written; the process then waits for `penstock store init`.
offer('work_timed', function(K, A)
  local replies = work(K, A)
  if type(replies) == 'table' and not replies.err then replies[#replies + 1] = num(now_ms()) end
  return replies
end, { 'allow-oom' })
