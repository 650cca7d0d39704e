-- Functions of the quota scripts. The client puts this file before each of them.
-- KEYS[1]  the quota: STRING of two instants in us, on the clock of this server: the
--          theoretical arrival time of the generic cell rate algorithm, and the time of
--          the write
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- read_used returns the theoretical arrival time, at least now. A write time in the future
-- means that the clock went back; the result then goes back by the same amount.
local function read_used()
  local used, written = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')
  if not used then return now end
  return math.max(now, used - math.max(0, written - now))
end

local function write_used(used)
  redis.call('SET', KEYS[1], string.format('%.0f %.0f', used, now), 'PX', math.ceil((used - now) / 1000) + 1000)
end
