// A second implementation of the score, written from docs/score.md. It reads the tables of that page.
//
//   node reference.mjs ../../docs/score.md < cases.json
//
// Standard input is a JSON list of cases, standard output the list of their records. Times are in
// milliseconds. Raw values are text, since JSON has no infinities.
import { readFileSync } from "node:fs";

const page = readFileSync(process.argv[2], "utf8");

function table(name) {
  const after = page.split(`<!-- table ${name} -->`)[1];
  if (after === undefined) throw new Error(`no table ${name}`);
  return after.split("<!-- end of table -->")[0].split("\n").filter((line) => line.startsWith("|")).slice(2)
    .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim().replace(/^`|`$/g, "")));
}

const list = (text, separator = ", ") => (text === "" ? [] : text.split(separator));
const developers = list(page.match(/audience of developers: ([a-z_, ]+)\./)[1]);
const day = 24 * 3600 * 1000;

const signals = table("signals").map(([id, bucket, weight, , curve, absent, days, notFor, sources]) => ({
  id, bucket, weight: Number(weight), curve: parseCurve(curve), absent: absent === "missing" ? null : Number(absent),
  maxAge: Number(days) * day, notFor: notFor === "developers" ? developers : list(notFor), sources: list(sources),
}));
const measures = table("measures").map(([id, ...numbers]) => {
  const [from, to, weight, withoutRevenue] = numbers.map(Number);
  return { id, from, to, weight, withoutRevenue };
});
const sectors = table("sectors").map(([name, codes, phrases, keywords]) => ({
  name, codes: list(codes).map((range) => range.split("-").map(Number)), phrases: list(phrases, "; "), keywords: list(keywords, "; "),
}));
const regions = new Map(table("regions").flatMap(([region, countries]) => countries.split(" ").map((code) => [code, region])));

const buckets = Object.fromEntries(table("buckets").map(([name, weight]) => [name, Number(weight)]));
const grades = table("grades").map(([grade, from]) => [Number(from), grade]);
const levels = [[85, "high"], [65, "medium"], [40, "low"], [0, "directional"]];

const limited = (x, low = 0, high = 100) => Math.min(Math.max(x, low), high);
const rounded = (x) => (Math.sign(x) * Math.round(Math.abs(x) * 10)) / 10;

function between(xs, ys, x) {
  if (x <= xs[0]) return ys[0];
  for (let i = 1; i < xs.length; i++) {
    if (x <= xs[i]) return ys[i - 1] + ((x - xs[i - 1]) / (xs[i] - xs[i - 1])) * (ys[i] - ys[i - 1]);
  }
  return ys.at(-1);
}

function parseCurve(text) {
  const [shape, values] = text.split(": ");
  const scores = [0, 20, 50, 80, 100];
  if (shape === "share") {
    const s = Number(values);
    const at = (percentile) => between([0, 10, 50, 90, 100], scores, percentile);
    return (x) => (x >= 0.5 ? at(100 - 50 * s) : at(50 * (1 - s)));
  }
  const scale = shape === "log" ? (x) => Math.log1p(Math.max(x, -1 + 1e-16)) : (x) => x;
  const knots = values.split(", ").map((value) => scale(Number(value)));
  if (knots[0] < knots[4]) return (x) => between(knots, scores, scale(x));
  return (x) => 100 - between([...knots].reverse(), scores, scale(x));
}

// Observations

const failures = ["source_timeout", "source_error", "source_rate_limited", "blocked_by_robots"];

function trust(signal, source) {
  const rank = (one) => {
    if (one === "facts") return -1;
    const i = signal.sources.indexOf(one);
    return i < 0 ? signal.sources.length : i;
  };
  return Math.max(...source.split("|").map(rank));
}

function precedence(signal, o) {
  if (o.state === "ok") return 1;
  if (o.state === "absent") return o.source === "facts" ? 2 : 4;
  return failures.includes(o.reason) && signal.sources.includes(o.source) ? 3 : 5;
}

const ascending = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

const dayOf = (o, input) => Math.floor(Math.min(o.at || input.now, input.now) / day);

function listedAt(o, input) {
  const ranks = [o.origin, o.source].map((name) => input.trust.indexOf(name)).filter((i) => i >= 0);
  return ranks.length > 0 ? Math.min(...ranks) : input.trust.length;
}

const order = (signal, input, a, b) =>
  precedence(signal, a) - precedence(signal, b) || dayOf(b, input) - dayOf(a, input) || listedAt(a, input) - listedAt(b, input) ||
  trust(signal, a.source) - trust(signal, b.source);

const isTooOld = (signal, input, o) => o.at !== 0 && input.now - o.at > signal.maxAge;

function choose(signal, input, observations) {
  return observations.filter((o) => o.signal === signal.id && !isTooOld(signal, input, o)).sort((a, b) =>
    order(signal, input, a, b) || ascending(a.source, b.source) || ascending(a.origin, b.origin) || a.raw - b.raw ||
    ascending(a.reason, b.reason))[0];
}

function read(o) {
  const special = { NaN, "+Inf": Infinity, "-Inf": -Infinity };
  const raw = o.state !== "ok" ? 0 : o.raw in special ? special[o.raw] : Number(o.raw);
  if (Number.isFinite(raw)) return { ...o, raw };
  return { ...o, raw: 0, state: "missing", reason: "source_error" };
}

// Carry forward

const isFailure = (warning) => warning.code !== "stale" && warning.code !== "defunct";
const isKnown = (o) => o.state === "ok" || o.state === "absent";

function carried(signal, now, input, observations) {
  const old = input.previous?.signals.find((s) => s.id === signal.id);
  if (!old || !isKnown(old) || input.now - old.observedAt > signal.maxAge) return now;
  const failing = input.warnings.some(isFailure);
  const noNews = (reason) => reason === "" || reason === "source_disabled" || failures.includes(reason) ||
    (failing && (reason === "unresolved_identity" || reason === "ambiguous_name"));
  const silent = (source) => !input.answered.includes(source) ||
    observations.some((o) => o.signal === signal.id && o.source === source && o.state === "missing" && noNews(o.reason));
  const open = old.source.split("|").some(silent) ||
    (old.state === "absent" && now?.state === "missing" && noNews(now.reason));
  const superseded =
    now?.state === "ok" ? order(signal, input, now, { ...old, at: 0 }) <= 0
    : now?.state === "absent" ? old.state === "absent" || now.source === "facts"
    : false;
  if (!open || superseded) return now;
  return { signal: signal.id, state: old.state, raw: Number(old.raw), source: old.source, origin: old.origin, at: old.observedAt, carried: true };
}

// Identity

const words = new Map(); // expressions by phrase

function hasWord(text, phrase) {
  if (!words.has(phrase)) {
    const literal = phrase.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    words.set(phrase, new RegExp(`(?<![\\p{L}\\p{Nd}])${literal}(?![\\p{L}\\p{Nd}])`, "u"));
  }
  return words.get(phrase).test(text);
}

function sectorOf(input) {
  for (const label of input.industries) {
    let best = "", name = "unknown";
    for (const sector of sectors) {
      for (const phrase of [...sector.phrases, ...sector.keywords]) {
        if (phrase.length > best.length && hasWord(label.toLowerCase(), phrase)) [best, name] = [phrase, sector.name];
      }
    }
    if (name !== "unknown") return name;
  }
  for (const sector of sectors) {
    if (sector.codes.some(([from, to]) => from <= input.sic && input.sic <= to)) return sector.name;
  }
  let most = 2, name = "unknown";
  for (const sector of sectors) {
    let votes = 0;
    for (const [part, points] of [["title", 3], ["description", 2], ["headings", 2], ["structured", 2], ["links", 1]]) {
      const text = (input.site?.[part] ?? "").toLowerCase();
      votes += points * sector.keywords.filter((keyword) => hasWord(text, keyword)).length;
    }
    if (votes > most) [most, name] = [votes, sector.name];
  }
  return name;
}

function countryOf(input) {
  const found = input.country.toUpperCase();
  if (regions.has(found)) return found;
  const tld = input.domain.split(".").at(-1);
  if (["io", "ai", "co", "me", "tv", "ly", "gg", "so", "to", "fm"].includes(tld)) return "";
  if (tld === "uk") return "GB";
  return regions.has(tld.toUpperCase()) ? tld.toUpperCase() : "";
}

// Record

function score(input) {
  const observations = input.observations.map(read);
  let record = signals.map((signal) => {
    const o = carried(signal, choose(signal, input, observations), input, observations);
    const seen = { observedAt: Math.min(o?.at || input.now, input.now), source: o?.source, origin: o?.origin, carried: o?.carried ?? false };
    if (o?.state === "ok") return { id: signal.id, state: "ok", raw: o.raw, score: signal.curve(o.raw), ...seen };
    if (o?.state === "absent" && signal.absent !== null) return { id: signal.id, state: "absent", raw: 0, score: signal.absent, ...seen };
    return { id: signal.id, state: "missing", raw: 0, score: 50, source: o?.source ?? "" };
  });
  const stale = (s) => isKnown(s) && s.observedAt < input.now;
  const of = (id) => record[signals.findIndex((signal) => signal.id === id)];
  const atLeast = (id, x) => of(id).state === "ok" && of(id).raw >= x;
  const atMost = (id, x) => of(id).state === "ok" && of(id).raw <= x;

  let sector = sectorOf(input);
  let country = countryOf(input);
  const marks = [atLeast("site_language_count", 6), atLeast("wikipedia_language_count", 25), atLeast("employee_count", 10000), input.hiringRegions >= 3];
  let reach = marks.filter(Boolean).length >= 2 ? "global" : regions.get(country) ?? "unknown";
  const old = input.previous;
  if (old && input.now - old.scoredAt <= 400 * day) {
    const failed = input.warnings.some((w) => isFailure(w) && record.some((s) => s.source === w.source && s.carried));
    if (old.country !== "" && (failed || country === "")) country = old.country;
    if (old.sector !== "unknown" && (failed || sector === "unknown")) sector = old.sector;
    if (old.reach !== "unknown" && (failed || reach === "unknown")) reach = old.reach;
  }

  // The doubt of values, before signals are left out.
  const doubts = record.map((s, i) => {
    let doubt = 0;
    for (const o of observations) {
      if (s.state !== "ok" || o.signal !== s.id || o.state !== "ok" || isTooOld(signals[i], input, o)) continue;
      if (Math.abs(dayOf(o, input) - dayOf({ at: s.observedAt }, input)) > 366) continue;
      const curve = signals[i].curve;
      if (o.source === s.source && o.origin === s.origin && o.raw === s.raw && o.high > o.low) {
        doubt = Math.max(doubt, Math.abs(curve(o.high) - curve(o.low)) / Math.sqrt(12));
      } else {
        doubt = Math.max(doubt, Math.abs(curve(o.raw) - s.score) / 2);
      }
    }
    return doubt;
  });

  const kinds = isKnown(of("public_listing")) ? [atLeast("public_listing", 0.5) ? "listed" : "unlisted"] : [];
  record = record.map((s, i) => {
    const { notFor } = signals[i];
    const excluded = notFor.includes(sector) || (s.state !== "ok" && kinds.some((kind) => notFor.includes(kind)));
    return excluded ? { id: s.id, state: "not_applicable", raw: 0, score: 50, source: "" } : s;
  });

  const warnings = [...input.warnings];
  for (const w of old?.warnings ?? []) {
    if (w.code === "defunct" && !input.answered.includes(w.source) && input.now - w.at <= 400 * day) warnings.push(w);
  }
  const silentSources = record.filter((s) => s.carried && isKnown(s)).flatMap((s) => {
    const all = s.source.split("|");
    const silent = all.filter((source) => !input.answered.includes(source));
    return silent.length > 0 ? silent : all;
  });
  const defunct = warnings.some((w) => w.code === "defunct");

  // Buckets and base.
  const applicable = {}, scores = {}, known = {};
  for (const bucket of Object.keys(buckets)) applicable[bucket] = scores[bucket] = known[bucket] = 0;
  record.forEach((s, i) => {
    if (s.state !== "not_applicable") applicable[signals[i].bucket] += signals[i].weight;
  });
  record.forEach((s, i) => {
    if (s.state === "not_applicable") return;
    const { bucket, weight } = signals[i];
    scores[bucket] += (weight / applicable[bucket]) * s.score;
    if (isKnown(s)) known[bucket] += weight / applicable[bucket];
  });
  if (defunct) scores.momentum_tailwinds = 0;
  const weighted = (values) => Object.entries(buckets).reduce((sum, [bucket, weight]) => sum + weight * values[bucket], 0);
  const base = weighted(scores);

  // Scale and premium.
  const revenue = of("revenue_latest_usd").state;
  let sum = 0, weights = 0.3, likely = 0.3, missing = 0;
  for (const m of measures) {
    const s = of(m.id);
    const weight = revenue === "ok" ? m.weight : m.withoutRevenue;
    const later = revenue === "ok" || revenue === "missing" ? m.weight : m.withoutRevenue; // if all were known
    if (s.state === "ok") {
      sum += weight * limited(Math.log(Math.max(s.raw, 1) / m.from) / Math.log(m.to / m.from), 0, 1);
      weights += weight;
      likely += later;
    } else if (s.state === "missing") {
      likely += later;
      missing += later;
    }
  }
  const unknown = missing / likely;
  const listed = atLeast("public_listing", 0.5);
  const scale = (sum + (listed ? 0.1 * 0.3 : 0)) / (weights + (listed ? 0.1 : 0));
  const premium = defunct ? 0 : rounded(12 * scale);
  let composite = rounded(limited(base + premium));
  if (defunct) composite = Math.min(composite, 30);

  // Labels.
  const age = of("organization_age_years");
  const young = age.state === "ok" && age.raw < 8;
  const growth = [
    atMost("organization_age_years", 12), atLeast("open_roles", 3), atLeast("open_roles", 25), atLeast("product_surface", 3),
    atMost("capital_raise_recency_days", 1095), atMost("capital_raise_recency_days", 1095), atLeast("funding_total_usd", 500000),
    atLeast("funding_total_usd", 5000000), atLeast("funding_rounds", 1), atLeast("funding_rounds", 2), atMost("traffic_rank", 300000),
    atLeast("hn_mentions_365d", 5),
  ].filter(Boolean).length;
  const profile = scale >= 0.3 || (!young && (scale >= 0.08 || listed)) ? "established" : growth >= 2 ? "growth" : "unclassified";
  const completeness = rounded(100 * weighted(known));
  const failedSources = new Set(warnings.filter(isFailure).map((w) => w.source));
  let level = levels.findIndex(([from]) => completeness >= from);
  if (["dns", "web", "wikidata", "tranco"].some((source) => failedSources.has(source))) level++;
  if (failedSources.size >= 4) level = Math.max(level, 2);

  let moved = 0;
  if (input.reference) {
    const ago = input.now - input.reference.scoredAt;
    if (ago >= 20 * day && ago <= 120 * day) moved = limited(base - input.reference.base, -20, 20);
  }

  // Interval.
  const moments = (pick, mean, deviation) => {
    for (const spread of [input.spreads?.cohorts[[sector, reach, profile].join(" ")], input.spreads?.all]) {
      if (!spread) continue;
      const [n, total, squares] = pick(spread);
      if (n >= 20) return [total / n, Math.sqrt(Math.max(squares / n - (total / n) ** 2, 0))];
    }
    return [mean, deviation];
  };
  let centre = base + premium;
  const deviations = {};
  record.forEach((s, i) => {
    if (s.state === "not_applicable") return;
    const { weight, bucket, maxAge, sources } = signals[i];
    const share = (weight / applicable[bucket]) * buckets[bucket];
    let [mean, deviation] = moments((spread) => spread.signals[i], 50, 30 / 1.2816);
    if (s.state === "missing") centre += share * (mean - 50);
    else deviation = Math.max(doubts[i], (deviation * Math.sqrt(stale(s) ? Math.min((input.now - s.observedAt) / maxAge, 1) : 0)) / 2);
    deviations[sources[0]] = (deviations[sources[0]] ?? 0) + share * deviation;
  });
  const [mean, deviation] = moments((spread) => spread.premium, premium, 2);
  centre += unknown * (mean - premium);
  deviations[""] = Math.sqrt(unknown) * deviation;
  const half = 1.645 * Math.sqrt(Object.values(deviations).reduce((total, d) => total + d * d, 0));

  return {
    base, composite, premium, profile, sector, country, reach, completeness,
    rating: grades.find(([from]) => composite >= from)[1],
    buckets: Object.keys(buckets).map((bucket) => rounded(scores[bucket])),
    bucketCompleteness: Object.keys(buckets).map((bucket) => rounded(100 * known[bucket])),
    band: levels[Math.min(level, 3)][1],
    momentumIndex: rounded(limited(scores.momentum_tailwinds + 0.5 * moved)),
    low: defunct ? 0 : Math.min(composite, rounded(limited(centre - half))),
    high: defunct ? 30 : Math.max(composite, rounded(limited(centre + half))),
    expected: defunct ? composite : rounded(limited(centre)),
    signals: record.map((s) => ({ state: s.state, raw: s.raw, score: s.score, source: s.source, stale: stale(s) })),
    warnings: [...new Set([...warnings.map((w) => w.source + " " + w.code), ...silentSources.map((source) => source + " stale")])].sort(),
  };
}

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(score)));
