-- recipe: tranco
-- publisher: Tranco (KU Leuven, TU Delft, Université Grenoble Alpes)
-- documentation: https://tranco-list.eu/
-- licence: none stated; cite the list and its day
-- format: lines "rank,domain", plain or in a zip archive; or one domain a line, in the order of ranks
-- signals: traffic_rank, traffic_rank_change_30d, traffic_rank_change_90d
-- file list: *.csv
--
-- The day of a list is in the name of its file or archive, as 2026-08-22 or 20260822; else it is the day of the import. The rank is of the
-- newest list. A change compares it with a list of 30 to 33, or 90 to 93 days before, as scoring/source/tranco.go. Only domains of known
-- companies are imported; a company on a subdomain has no rank.
WITH
    2000000 AS rank_max, -- ranks from here on count as not listed

    line AS
    (
        SELECT
            ifNull(toDateOrNull(replaceAll(extract(_path, '.*/[0-9]{4}/.*(20[0-9]{2}-?[01][0-9]-?[0-3][0-9])'), '-', '')),
                toDate({day:String})) AS day,
            if(length(cells) = 1, _row_number + 1, toUInt32OrZero(cells[1])) AS rank, -- a list without ranks is in their order
            lower(if(length(cells) = 1, cells[1], cells[2])) AS listed
        FROM
        (
            SELECT _path, _row_number, splitByChar(',', trimRight(text, '\r ')) AS cells
            FROM file({list:String}, 'LineAsString', 'text String')
        )
        WHERE rank BETWEEN 1 AND rank_max - 1 AND listed != ''
    ),

    -- A domain that is not in a full list counts as rank_max. A list of the first 100,000 does not tell how far below a domain is.
    list AS (SELECT day, count() >= 900000 AS is_full FROM line GROUP BY day),
    (SELECT max(day) FROM list) AS newest,
    (SELECT max(day) FROM list WHERE day BETWEEN newest - 33 AND newest - 30) AS month_ago, -- 1970-01-01 if there is none
    (SELECT max(day) FROM list WHERE day BETWEEN newest - 93 AND newest - 90) AS quarter_ago,
    (SELECT groupArray(day) FROM list WHERE is_full) AS full_days,

    known AS
    (
        SELECT value AS listed, domain
        FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
        WHERE kind = 'domain'
    ),

    company AS
    (
        SELECT listed,
            -- The better rank of a duplicate counts.
            minOrNullIf(rank, day = newest) AS rank_now,
            minOrNullIf(rank, day = month_ago) AS rank_month_ago,
            minOrNullIf(rank, day = quarter_ago) AS rank_quarter_ago,
            coalesce(rank_now, if(has(full_days, newest), rank_max, NULL)) AS counted_now
        FROM line
        WHERE day = newest OR day IN (month_ago, quarter_ago) AND listed IN (SELECT listed FROM known)
        GROUP BY listed
    )
SELECT
    domain,
    toString(newest) AS as_of,
    rank_now AS `signal:traffic_rank`,
    log2(coalesce(rank_month_ago, if(has(full_days, month_ago), rank_max, NULL)) / counted_now) AS `signal:traffic_rank_change_30d`,
    log2(coalesce(rank_quarter_ago, if(has(full_days, quarter_ago), rank_max, NULL)) / counted_now) AS `signal:traffic_rank_change_90d`,
    if(domain = '', 'no company has this domain', '') AS unmatched,
    listed AS subject
FROM company LEFT JOIN known USING listed
