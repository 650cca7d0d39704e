-- The hot read for wrk: one company, one key. See docs/bench.md.
--   export COMPANYSCORE_KEY=svc_live_...
--   wrk -t1 -c64 -d15s --latency -s scripts/load/hot.lua http://127.0.0.1:8080
-- wrk keeps its connections busy: what it prints is throughput, and latency at
-- saturation; for latency at a rate use k6 or `companyscore bench run`.
wrk.method = "GET"
wrk.path = "/v1/score/" .. (os.getenv("DOMAIN") or "apple.com")
wrk.headers["X-API-Key"] = os.getenv("COMPANYSCORE_KEY") or error("set COMPANYSCORE_KEY")

local counters = {}

function setup(thread)
  table.insert(counters, thread)
  thread:set("bad", 0)
end

function response(status)
  if status ~= 200 then
    bad = bad + 1
  end
end

function done(summary)
  local bad = 0
  for _, thread in ipairs(counters) do
    bad = bad + thread:get("bad")
  end
  io.write(string.format("answers other than 200: %d\n", bad))
  if bad > 0 or summary.errors.timeout > 0 or summary.errors.connect > 0 then
    os.exit(1)
  end
end
