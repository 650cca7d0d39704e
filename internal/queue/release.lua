-- release requeues running runs.
-- KEYS: see run.lua
-- ARGV for each run: id, holder, error or '', pause in ms or ''; without a pause the attempt does not count
-- returns the number of runs that still had the given holder
local released = 0
for i = 1, #ARGV, 4 do
  local id, holder, message, pause = unpack(ARGV, i, i + 3)
  local key = RUN .. id
  if redis.call('HGET', key, 'holder') == holder then
    if message ~= '' then redis.call('HSET', key, 'error', message) end
    if pause == '' then redis.call('HINCRBY', key, 'attempts', -1) end
    requeue_run(id, tonumber(pause))
    released = released + 1
  end
end
return released
