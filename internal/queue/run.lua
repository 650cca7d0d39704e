-- What every script of the cold path shares. It is put before each of them, so
-- that the layout of a run is written down once.
--
-- KEYS[1]  leases      ZSET of run ids by lease end, unix ms of this server's clock
-- KEYS[2]  retries     ZSET of run ids by the start of their next attempt, on the same clock
-- KEYS[3]  run log     SET of ended runs that still have to be logged
-- The others are prefixes. Keys made from them carry the same hash tag, so they share the slot.
-- KEYS[4]  runs        HASH by run id
-- KEYS[5]  in flight   STRING by domain: the open run's id
-- KEYS[6]  lanes       ZSET by lane: ids of waiting runs by turn
-- KEYS[7]  turns       HASH by lane: how many runs of each owner wait, and clock: the turn claimed last
--
-- HASH run:  domain, lane, owner, state, created_at, attempts  always there
--            waiters   how many jobs and operators asked for it
--            holder    the claim that works on it, only while running
--            started_at (of the first attempt), finished_at, scored_at, error
-- Times are unix ms; a field that has no value is absent. The owner is an account's
-- id or, for runs without one, "operator".
-- A queued run is in its lane or in retries, a running one in leases.
local LEASES, RETRIES, RUNLOG, RUN, INFLIGHT, LANE, TURNS = unpack(KEYS, 1, 7)

-- clock is this server's time in unix ms. Leases and retries are measured by it
-- alone, so that the clocks of workers do not matter.
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function is_open(state)
  return state == 'queued' or state == 'running'
end

-- enter_lane puts a run into a lane. Lanes are start-time fair queues (Goyal, Vin
-- and Cheng, SIGCOMM 1996) of runs that cost the same: the n-th waiting run of an
-- owner is n turns after the one claimed last, however many others wait.
local function enter_lane(id, lane, owner)
  local nth = redis.call('HINCRBY', TURNS .. lane, owner, 1)
  redis.call('ZADD', LANE .. lane, (redis.call('HGET', TURNS .. lane, 'clock') or 0) + nth, id)
end

-- return_to_lane puts a run that was claimed before in front of all others.
local function return_to_lane(id, lane, owner)
  redis.call('HINCRBY', TURNS .. lane, owner, 1)
  redis.call('ZADD', LANE .. lane, redis.call('HGET', TURNS .. lane, 'clock') or 0, id)
end

-- drop_turns counts n runs of an owner less in a lane that they have left.
local function drop_turns(lane, owner, n)
  if redis.call('EXISTS', LANE .. lane) == 0 then
    redis.call('DEL', TURNS .. lane)
  elseif redis.call('HINCRBY', TURNS .. lane, owner, -n) <= 0 then
    redis.call('HDEL', TURNS .. lane, owner)
  end
end

-- leave_lane takes a run out of its lane and reports whether it was there.
local function leave_lane(id, lane, owner)
  if redis.call('ZREM', LANE .. lane, id) == 0 then return false end
  drop_turns(lane, owner, 1)
  return true
end

-- open_run returns the id of the open run of the domain and counts one more
-- waiter; without such a run it opens one with the given id. A customer's call
-- takes the run of an operator into the api lane, and whoever asks for a run of the
-- refresh job takes it out of that lane, since its runs may end without a record. The run lives for ttl ms at least.
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

-- unlist_run takes an open run off every list.
local function unlist_run(id)
  local domain, lane, owner = unpack(redis.call('HMGET', RUN .. id, 'domain', 'lane', 'owner'))
  if redis.call('GET', INFLIGHT .. domain) == id then
    redis.call('DEL', INFLIGHT .. domain)
  end
  if redis.call('ZREM', LEASES, id) == 0 and not leave_lane(id, lane, owner) then
    redis.call('ZREM', RETRIES, id)
  end
end

-- close_run ends a run that is open. The time to live stays what it was.
local function close_run(id, state, now, scored_at, message)
  local key = RUN .. id
  redis.call('HSET', key, 'state', state, 'finished_at', now)
  if scored_at ~= '' then redis.call('HSET', key, 'scored_at', scored_at) end
  if message ~= '' then redis.call('HSET', key, 'error', message) end
  redis.call('HDEL', key, 'holder')
  redis.call('SADD', RUNLOG, id)
  unlist_run(id)
end

-- requeue_run makes a running run wait again: after a pause in ms or, without one,
-- at the front of its lane.
local function requeue_run(id, pause)
  local key = RUN .. id
  redis.call('HSET', key, 'state', 'queued')
  redis.call('HDEL', key, 'holder')
  redis.call('ZREM', LEASES, id)
  if pause then
    redis.call('ZADD', RETRIES, clock() + pause, id)
  else
    return_to_lane(id, unpack(redis.call('HMGET', key, 'lane', 'owner')))
  end
end

-- over returns up to most ids of leases or retries whose time has come, and those
-- whose time lies further ahead than anybody sets one: then the clock was set back.
local function over(list, farthest, most)
  local now = clock()
  local ids = redis.call('ZRANGEBYSCORE', list, '-inf', now, 'LIMIT', 0, most)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', list, '(' .. now + farthest, '+inf', 'LIMIT', 0, most - #ids)) do
    ids[#ids + 1] = id
  end
  return ids
end
