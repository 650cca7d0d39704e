// The hot read for k6: arrivals at a fixed rate, whatever the server does. See docs/bench.md.
//   export COMPANYSCORE_KEY=svc_live_...
//   k6 run -e URL=http://127.0.0.1:8080 -e RATE=2000 scripts/load/hot.js
// k6 needs some fifty times the processor time of `companyscore bench run` for each
// request: on a small machine that shares its cores with the server keep RATE low.
import http from 'k6/http';
import { check } from 'k6';

const url = `${__ENV.URL || 'http://127.0.0.1:8080'}/v1/score/${__ENV.DOMAIN || 'apple.com'}`;
const params = { headers: { 'X-API-Key': __ENV.COMPANYSCORE_KEY }, responseType: 'none' };

export const options = {
  discardResponseBodies: true,
  summaryTrendStats: ['med', 'p(90)', 'p(99)', 'p(99.9)', 'max'],
  scenarios: {
    hot: {
      executor: 'constant-arrival-rate',
      rate: Number(__ENV.RATE || 2000),
      timeUnit: '1s',
      duration: __ENV.DURATION || '15s',
      preAllocatedVUs: 64,
      maxVUs: 256,
    },
  },
  thresholds: {
    checks: ['rate==1'],
    dropped_iterations: [`rate<${Number(__ENV.RATE || 2000) / 100}`], // else k6 itself did not keep up
  },
};

export default function () {
  const res = http.get(url, params);
  check(res, { 'is 200': (r) => r.status === 200 });
}
