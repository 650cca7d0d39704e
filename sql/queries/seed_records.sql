-- name: seed_records
-- Writes the records of the generated companies with indexes first to last and name numbers x_from to x_last. Package internal/seed has
-- the same algorithm in Go. Rows are nearly in the order of the table, and inserts barely overlap, so merges are cheap. No row replaces
-- another, so optimize_on_insert is off; it would double the time of the insert.
-- params: first UInt64, last UInt64, x_from UInt32, x_last UInt32, records UInt32 (of each company), detailed UInt32 (how many
-- of them have their signals, youngest first), mix UInt64 (hash of the seed), until_ms Int64, and lists of words.
INSERT INTO score_history (domain, scored_at, pipeline_version, company_name, country, sector, geo_scope, profile, rating, composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health, momentum_index, completeness_pct, team_structure_completeness_pct, market_position_completeness_pct, momentum_tailwinds_completeness_pct, financial_health_completeness_pct, confidence, `signal.id`, `signal.state`, `signal.raw`, `signal.score`, `signal.source`, `signal.reason`, `signal.observed_at`, `signal.share`, `warning.source`, `warning.code`, `warning.at`)
SELECT
    c.domain, c.scored_at, p.pipeline_version, c.company_name, p.country, p.sector, p.geo_scope, p.profile, p.rating,
    p.composite, p.interval_low, p.interval_high, p.expected_composite, p.base, p.scale_premium, p.team_structure, p.market_position, p.momentum_tailwinds, p.financial_health,
    multiIf(c.j = {records:UInt32} - 1, p.momentum_index, c.position < 7, p.momentum_after, p.momentum_before),
    p.completeness_pct, p.team_structure_completeness_pct, p.market_position_completeness_pct,
    p.momentum_tailwinds_completeness_pct, p.financial_health_completeness_pct, p.confidence,
    d.`signal.id`, d.`signal.state`, d.`signal.raw`, d.`signal.score`, d.`signal.source`, d.`signal.reason`,
    arrayMap(state -> if(state IN ('ok', 'absent'), c.scored_at, fromUnixTimestamp64Milli(toInt64(0), 'UTC')), d.`signal.state`),
    d.`signal.share`, p.`warning.source`, p.`warning.code`, arrayMap(w -> c.scored_at, p.`warning.source`)
FROM
(
    SELECT
        domain, company_name, j,
        modulo(phase_draw % 14 + j, 14) AS position,
        toUInt32(i % 4096 * 8 + if(position < 8, position, 14 - position)) AS id,
        fromUnixTimestamp64Milli({until_ms:Int64} - intDiv(youth * youth * 2, 5) - j * 2592000000
            - if(j > 0, toInt64(intHash64(bitXor(bitOr(bitShiftLeft(i, 8), 16 + j), {mix:UInt64})) % 777600000) - 388800000, 0), 'UTC') AS scored_at
    FROM
    (
        SELECT
            bitOr(bitShiftLeft(n, 20), low) AS i,
            concat(words, '-', kind, if(n > 0, concat('-', toString(n)), ''),
                {endings:Array(String)}[1 + intHash64(bitXor(bitOr(bitShiftLeft(i, 8), 2), {mix:UInt64})) % 16]) AS domain,
            concat(initcap(words), ' ', initcap(kind), if(n > 0, concat(' ', toString(n)), '')) AS company_name,
            intHash64(bitXor(bitShiftLeft(i, 8), {mix:UInt64})) AS phase_draw,
            intHash64(bitXor(bitOr(bitShiftLeft(i, 8), 1), {mix:UInt64})) % 65536 AS youth
        FROM
        (
            WITH
                bitAnd(x * bitOr(bitAnd({mix:UInt64}, 1048575), 1) + bitShiftRight({mix:UInt64}, 20), 1048575) AS x1,
                bitXor(x1, bitShiftRight(x1, 11)) AS x2,
                bitAnd(x2 * bitOr(bitShiftRight({mix:UInt64}, 40), 1) + bitShiftRight({mix:UInt64}, 20), 1048575) AS x3
            SELECT
                number + {x_from:UInt32} AS x,
                bitXor(x3, bitShiftRight(x3, 9)) AS low,
                concat({first_words:Array(String)}[1 + bitShiftRight(x, 13)], {second_words:Array(String)}[1 + bitAnd(bitShiftRight(x, 6), 127)]) AS words,
                {kinds:Array(String)}[1 + bitAnd(x, 63)] AS kind
            FROM numbers({x_last:UInt32} - {x_from:UInt32} + 1)
        )
        ARRAY JOIN range(bitShiftRight({first:UInt64}, 20), bitShiftRight({last:UInt64}, 20) + 1) AS n
        WHERE i >= {first:UInt64} AND i <= {last:UInt64}
    )
    ARRAY JOIN reverse(range({records:UInt32})) AS j
) AS c
INNER JOIN (SELECT * FROM seed_phase FINAL) AS p ON p.id = c.id
LEFT JOIN (SELECT * FROM seed_phase FINAL) AS d ON d.id = if(c.j < {detailed:UInt32}, c.id, 4294967295)
SETTINGS optimize_on_insert = 0, max_insert_threads = 1, min_insert_block_size_rows = 1048576, min_insert_block_size_bytes = 536870912, max_block_size = 16384
