-- claim begins attempts of waiting runs and leases them to one holder. Each slot goes
-- to a lane drawn at random by weight (Waldspurger and Weihl, lottery scheduling, OSDI
-- 1994). A lane of weight 0 gets only slots that the other lanes leave.
-- KEYS: see run.lua
-- ARGV[1] holder, ARGV[2] now in ms, ARGV[3] lease in ms, ARGV[4] maximum number of runs,
-- ARGV[5] random seed, ARGV[6] longest backoff of a retry in ms,
-- ARGV[7..] for each lane: its name, its weight
-- returns for each run: id, domain, lane, created_at, attempts, started_at
local holder, now, most = ARGV[1], ARGV[2], tonumber(ARGV[4])
for _, id in ipairs(over(RETRIES, ARGV[6], most)) do
  local lane, owner = unpack(redis.call('HMGET', RUN .. id, 'lane', 'owner'))
  if lane then return_to_lane(id, lane, owner) end -- else it has expired
  redis.call('ZREM', RETRIES, id)
end

local lanes, waiting = {}, 0
for i = 7, #ARGV, 2 do
  local n = redis.call('ZCARD', LANE .. ARGV[i])
  lanes[#lanes + 1] = {name = ARGV[i], weight = tonumber(ARGV[i + 1]), left = n, take = 0}
  waiting = waiting + n
end

local function draw()
  local tickets, last = 0, nil
  for _, lane in ipairs(lanes) do
    if lane.left > 0 then
      tickets = tickets + lane.weight
      last = lane
    end
  end
  local ticket = math.random() * tickets
  for _, lane in ipairs(lanes) do
    if lane.left > 0 and ticket < lane.weight then return lane end
    if lane.left > 0 then ticket = ticket - lane.weight end
  end
  return last
end

math.randomseed(ARGV[5])
for _ = 1, math.min(most, waiting) do
  local lane = draw()
  lane.left, lane.take = lane.left - 1, lane.take + 1
end

local claimed, lease_end = {}, clock() + ARGV[3]
for _, lane in ipairs(lanes) do
  if lane.take > 0 then
    local line, owners, turn = redis.call('ZRANGE', LANE .. lane.name, 0, lane.take - 1, 'WITHSCORES'), {}, 0
    -- Remove the runs from the lane last, so that none is lost when a write fails for lack of memory.
    for i = 1, #line, 2 do
      local id = line[i]
      turn = tonumber(line[i + 1])
      local domain, state, owner, created, attempts, started =
        unpack(redis.call('HMGET', RUN .. id, 'domain', 'state', 'owner', 'created_at', 'attempts', 'started_at'))
      if state == 'queued' then -- else it has expired
        attempts, started = attempts + 1, started or now
        redis.call('HSET', RUN .. id, 'state', 'running', 'holder', holder, 'attempts', attempts, 'started_at', started)
        redis.call('ZADD', LEASES, lease_end, id)
        owners[owner] = (owners[owner] or 0) + 1
        for _, field in ipairs({id, domain, lane.name, created, tostring(attempts), started}) do
          claimed[#claimed + 1] = field
        end
      end
    end
    redis.call('ZREMRANGEBYRANK', LANE .. lane.name, 0, lane.take - 1)
    if lane.left == 0 then
      redis.call('DEL', TURNS .. lane.name)
    else
      redis.call('HSET', TURNS .. lane.name, 'clock', turn)
      for owner, n in pairs(owners) do drop_turns(lane.name, owner, n) end
    end
  end
end
return claimed
