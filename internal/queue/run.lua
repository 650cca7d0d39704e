-- What every script of the cold path shares. It is put before each of them, so
-- that the layout of a run is written down once.
--
-- KEYS[1]  open runs    ZSET of run ids by creation
-- KEYS[2]  leases       ZSET of run ids by lease end, unix ms of this server's clock
-- KEYS[3]  run log      SET of ended runs that still have to be logged
-- KEYS[4]  prefix of the runs; the key of a run is the prefix and its id
-- KEYS[5]  prefix of the in-flight keys; the key is the prefix and the domain
-- The keys made from a prefix carry the same hash tag, so they share the slot.
--
-- HASH run:  id, domain, origin, state, created_at, attempts  always there
--            task      id of the queue's task that may begin it
--            waiters   how many jobs and operators asked for it
--            holder    the attempt that works on it, only while running
--            started_at (of the first attempt), finished_at, scored_at, error
-- Times are unix ms; a field that has no value is absent.
local OPEN, LEASES, RUNLOG, RUN, INFLIGHT = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

-- clock is this server's time in unix ms. Leases are measured by it alone, so
-- that the clocks of workers do not matter.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function is_open(state)
  return state == 'queued' or state == 'running'
end

-- open_run returns the id of the run under way for the domain and counts one
-- more waiter; without such a run it opens one with the given id. The run lives
-- for ttl ms at least.
local function open_run(domain, id, origin, now, ttl)
  local current = redis.call('GET', INFLIGHT .. domain)
  if current and is_open(redis.call('HGET', RUN .. current, 'state')) then
    redis.call('HINCRBY', RUN .. current, 'waiters', 1)
    if redis.call('PTTL', RUN .. current) < tonumber(ttl) then
      redis.call('PEXPIRE', RUN .. current, ttl)
      redis.call('PEXPIRE', INFLIGHT .. domain, ttl)
    end
    return current
  end
  redis.call('HSET', RUN .. id, 'id', id, 'domain', domain, 'origin', origin, 'state', 'queued',
    'created_at', now, 'attempts', 0, 'task', id, 'waiters', 1)
  redis.call('PEXPIRE', RUN .. id, ttl)
  redis.call('SET', INFLIGHT .. domain, id, 'PX', ttl)
  redis.call('ZADD', OPEN, now, id)
  return id
end

-- unlist_run takes a run off every list of runs under way.
local function unlist_run(id, domain)
  if redis.call('GET', INFLIGHT .. domain) == id then
    redis.call('DEL', INFLIGHT .. domain)
  end
  redis.call('ZREM', OPEN, id)
  redis.call('ZREM', LEASES, id)
end

-- close_run ends a run that is open. The time to live stays what it was.
local function close_run(id, state, now, scored_at, message)
  local key = RUN .. id
  redis.call('HSET', key, 'state', state, 'finished_at', now)
  if scored_at ~= '' then redis.call('HSET', key, 'scored_at', scored_at) end
  if message ~= '' then redis.call('HSET', key, 'error', message) end
  redis.call('HDEL', key, 'holder')
  unlist_run(id, redis.call('HGET', key, 'domain'))
  redis.call('SADD', RUNLOG, id)
end

-- new_task gives an open run a task id that no task of it ever had. A task with
-- an earlier id can no longer begin the run.
local function new_task(id)
  local task = id .. '#' .. redis.call('HINCRBY', RUN .. id, 'tasks', 1)
  redis.call('HSET', RUN .. id, 'state', 'queued', 'task', task)
  redis.call('HDEL', RUN .. id, 'holder')
  redis.call('ZREM', LEASES, id)
  return task
end
