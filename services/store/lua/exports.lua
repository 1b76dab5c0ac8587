-- What may be called

-- pairs does not exist at load time either. Only what puts messages in may fail at maxmemory; the combined call
-- carries settles too, so it refuses its publishes itself (see guard).
local function offer(name, callback, flags)
  redis.register_function({ function_name = 'ps1_' .. name, callback = callback, flags = flags })
end
offer('work', work, { 'allow-oom' })
offer('session', session, { 'allow-oom' })
offer('fence', fence, { 'allow-oom' })
offer('sweep', sweep, { 'allow-oom' })
offer('bury_session', bury_session, { 'allow-oom' })
offer('upkeep', upkeep, { 'allow-oom' })
offer('delete', delete, { 'allow-oom' })
offer('release', release, { 'allow-oom' })
offer('purge', purge, { 'allow-oom' })
offer('unregister', unregister, { 'allow-oom' })
offer('declare', declare, {})
offer('reserve', reserve, {})
offer('redrive', redrive, {})
offer('register', register, {})
offer('set_epoch', set_epoch, {})
offer('stats', stats, { 'no-writes' })
offer('peek', peek, { 'no-writes' })
