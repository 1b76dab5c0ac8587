-- Register the functions of the library

-- `pairs` does not exist at load time. Only functions that add data may fail at maxmemory; the combined call also carries settles,
-- so it refuses its publishes itself (see guard).
local function offer(name, callback, flags)
  redis.register_function({ function_name = 'ps1_' .. name, callback = callback, flags = flags })
end
offer('work', work, { 'allow-oom' })
offer('session', session, { 'allow-oom' })
offer('fence', fence, { 'allow-oom' })
offer('sweep', sweep, { 'allow-oom' })
offer('bury_session', bury_session, { 'allow-oom' })
offer('upkeep', FUNCTIONS.upkeep, { 'allow-oom' })
offer('delete', FUNCTIONS.delete, { 'allow-oom' })
offer('own', FUNCTIONS.own, { 'allow-oom' })
offer('disown', FUNCTIONS.disown, { 'allow-oom' })
offer('reclaim', FUNCTIONS.reclaim, { 'allow-oom' })
offer('set_condition', FUNCTIONS.set_condition, { 'allow-oom' })
offer('release', FUNCTIONS.release, { 'allow-oom' })
offer('purge', FUNCTIONS.purge, { 'allow-oom' })
offer('empty', FUNCTIONS.empty, { 'allow-oom' })
offer('unregister', FUNCTIONS.unregister, { 'allow-oom' })
offer('hand_over', FUNCTIONS.hand_over, { 'allow-oom' })
offer('put_peer', FUNCTIONS.put_peer, {})
offer('drop_peer', FUNCTIONS.drop_peer, { 'allow-oom' })
offer('ring_node', FUNCTIONS.ring_node, { 'allow-oom' })
offer('process', FUNCTIONS.process, { 'allow-oom' })
offer('put_report', FUNCTIONS.put_report, {})
offer('sample', FUNCTIONS.sample, { 'allow-oom' })
offer('log_trim', log_trim, { 'allow-oom' })
offer('log_lease', log_lease, { 'allow-oom' })
offer('log_accept', log_accept, {})
offer('log_declare', log_declare, {})
offer('log_state', log_state, { 'allow-oom' })
offer('declare', FUNCTIONS.declare, {})
offer('reserve', FUNCTIONS.reserve, { 'allow-oom' })
offer('redrive', FUNCTIONS.redrive, {})
offer('register', FUNCTIONS.register, {})
offer('set_epoch', FUNCTIONS.set_epoch, {})
offer('next_ids', FUNCTIONS.next_ids, { 'allow-oom' })
offer('stats', FUNCTIONS.stats, { 'no-writes' })
offer('stats_of', FUNCTIONS.stats_of, { 'no-writes' })
offer('peek', FUNCTIONS.peek, { 'no-writes' })
offer('ready', FUNCTIONS.ready, { 'no-writes' })
offer('dead', FUNCTIONS.dead, { 'no-writes' })
offer('available', FUNCTIONS.available, { 'allow-oom' })  -- it adjusts a claim after a step of the clock
offer('log_bindings', log_bindings, { 'no-writes' })
-- As `work`, with the store's time as the last reply. It is a separate function, so that an older library refuses a newer process
-- before anything is written; the process then waits for `penstock store init`.
offer('work_timed', function(K, A)
  local replies = work(K, A)
  if type(replies) == 'table' and not replies.err then replies[#replies + 1] = num(now_ms()) end
  return replies
end, { 'allow-oom' })
