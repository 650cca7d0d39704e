-- Functions and keys that all scripts of the cold path share. Script prepends this file
-- to each of them. It defines the layout of a run.
--
-- KEYS[1]  leases      ZSET of run ids by lease end, unix ms of this server's clock
-- KEYS[2]  retries     ZSET of run ids by the start of their next attempt, on the same clock
-- KEYS[3]  run log     SET of ended runs that are not yet in the run log
-- The other keys are prefixes. Keys built from them have the same hash tag, so they share the slot.
-- KEYS[4]  runs        HASH by run id
-- KEYS[5]  in flight   STRING by domain: the open run's id
-- KEYS[6]  lanes       ZSET by lane: ids of waiting runs by turn
-- KEYS[7]  turns       HASH by lane: number of waiting runs by owner, and clock: the turn claimed last
--
-- HASH run:  domain, lane, owner, state, created_at, attempts  always set
--            waiters   number of jobs and operators that requested it
--            holder    the claim that works on it, set only while running
--            started_at (of the first attempt), finished_at, scored_at, error
--            done, total   sources of the current attempt, written by heartbeats
-- Times are unix ms; a field that has no value is absent. The owner is an account's
-- id or, for runs without one, "operator".
-- A queued run is in its lane or in retries, a running one in leases.
local LEASES, RETRIES, RUNLOG, RUN, INFLIGHT, LANE, TURNS = unpack(KEYS, 1, 7)

-- clock returns the time of this Redis server in unix ms. Leases and retries use only
-- this clock, so the clocks of workers do not matter.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function is_open(state)
  return state == 'queued' or state == 'running'
end

-- enter_lane adds a run to a lane. A lane is a start-time fair queue (Goyal, Vin and
-- Cheng, SIGCOMM 1996) with equal cost per run: the n-th waiting run of an owner is n
-- turns after the one claimed last, independent of other owners.
local function enter_lane(id, lane, owner)
  local nth = redis.call('HINCRBY', TURNS .. lane, owner, 1)
  redis.call('ZADD', LANE .. lane, (redis.call('HGET', TURNS .. lane, 'clock') or 0) + nth, id)
end

-- return_to_lane adds a run that was claimed before to the front of its lane.
local function return_to_lane(id, lane, owner)
  redis.call('HINCRBY', TURNS .. lane, owner, 1)
  redis.call('ZADD', LANE .. lane, redis.call('HGET', TURNS .. lane, 'clock') or 0, id)
end

-- drop_turns subtracts n runs of an owner that have left a lane.
local function drop_turns(lane, owner, n)
  if redis.call('EXISTS', LANE .. lane) == 0 then
    redis.call('DEL', TURNS .. lane)
  elseif redis.call('HINCRBY', TURNS .. lane, owner, -n) <= 0 then
    redis.call('HDEL', TURNS .. lane, owner)
  end
end

-- leave_lane removes a run from its lane and reports whether it was there.
local function leave_lane(id, lane, owner)
  if redis.call('ZREM', LANE .. lane, id) == 0 then return false end
  drop_turns(lane, owner, 1)
  return true
end

-- open_run returns the id of the open run of the domain and adds one waiter. Without
-- an open run it opens one with the given id. A customer's call moves a joined run to
-- the api lane. Any call moves a joined run out of the refresh lane, since runs of that
-- lane may end without a record. The run lives for at least ttl ms.
local function open_run(domain, id, lane, owner, now, ttl)
  local current = redis.call('GET', INFLIGHT .. domain)
  if current then
    local state, its_lane, its_owner = unpack(redis.call('HMGET', RUN .. current, 'state', 'lane', 'owner'))
    if is_open(state) then
      redis.call('HINCRBY', RUN .. current, 'waiters', 1)
      if its_lane ~= lane and (lane == 'api' or its_lane == 'refresh') then
        redis.call('HSET', RUN .. current, 'lane', lane, 'owner', owner)
        if leave_lane(current, its_lane, its_owner) then enter_lane(current, lane, owner) end
      end
      if redis.call('PTTL', RUN .. current) < tonumber(ttl) then
        redis.call('PEXPIRE', RUN .. current, ttl)
        redis.call('PEXPIRE', INFLIGHT .. domain, ttl)
      end
      return current
    end
  end
  redis.call('HSET', RUN .. id, 'domain', domain, 'lane', lane, 'owner', owner, 'state', 'queued',
    'created_at', now, 'attempts', 0, 'waiters', 1)
  redis.call('PEXPIRE', RUN .. id, ttl)
  redis.call('SET', INFLIGHT .. domain, id, 'PX', ttl)
  enter_lane(id, lane, owner)
  return id
end

-- unlist_run removes an open run from every list.
local function unlist_run(id)
  local domain, lane, owner = unpack(redis.call('HMGET', RUN .. id, 'domain', 'lane', 'owner'))
  if redis.call('GET', INFLIGHT .. domain) == id then
    redis.call('DEL', INFLIGHT .. domain)
  end
  if redis.call('ZREM', LEASES, id) == 0 and not leave_lane(id, lane, owner) then
    redis.call('ZREM', RETRIES, id)
  end
end

-- close_run ends an open run. It does not change the time to live.
local function close_run(id, state, now, scored_at, message)
  local key = RUN .. id
  redis.call('HSET', key, 'state', state, 'finished_at', now)
  if scored_at ~= '' then redis.call('HSET', key, 'scored_at', scored_at) end
  if message ~= '' then redis.call('HSET', key, 'error', message) end
  redis.call('HDEL', key, 'holder', 'done', 'total')
  redis.call('SADD', RUNLOG, id)
  unlist_run(id)
end

-- requeue_run queues a running run again: as a retry after a pause in ms or, without
-- one, at the front of its lane.
local function requeue_run(id, pause)
  local key = RUN .. id
  redis.call('HSET', key, 'state', 'queued')
  redis.call('HDEL', key, 'holder', 'done', 'total')
  redis.call('ZREM', LEASES, id)
  if pause then
    redis.call('ZADD', RETRIES, clock() + pause, id)
  else
    return_to_lane(id, unpack(redis.call('HMGET', key, 'lane', 'owner')))
  end
end

-- over returns up to most ids of leases or retries that are due. An entry further ahead
-- than farthest ms counts as due too: the clock was set back after it was written.
local function over(list, farthest, most)
  local now = clock()
  local ids = redis.call('ZRANGEBYSCORE', list, '-inf', now, 'LIMIT', 0, most)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', list, '(' .. now + farthest, '+inf', 'LIMIT', 0, most - #ids)) do
    ids[#ids + 1] = id
  end
  return ids
end
