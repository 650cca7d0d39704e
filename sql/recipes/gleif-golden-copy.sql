-- recipe: gleif-golden-copy
-- publisher: Global Legal Entity Identifier Foundation
-- documentation: https://www.gleif.org/en/lei-data/gleif-golden-copy/download-the-golden-copy
-- licence: CC0-1.0
-- format: CSV of level 1 (lei2), plain or in a zip archive; the day in the name of the file
-- signals: legal_entity_registered, lei
-- file list: *lei2*.csv [required: LEI, Entity.LegalName, Entity.EntityCategory, Entity.EntityStatus, Registration.RegistrationStatus]
--
-- A company is found by its LEI, else by its name of at least two words, as scoring/source/gleif.go. A name must be that of one company and
-- of one entity; of several entities the only active one counts. Funds, branches, persons and withdrawn identifiers are not found by
-- name. The day is in the name of the file, as 2026-08-22 or 20260822; else it is the day of the import.
WITH
    '( (ab|ag|aktiengesellschaft|as|asa|aps|bhd|bv|co|company|corp|corporation|doo|gmbh|group|holding|holdings|inc|incorporated|'
        || 'jsc|kg|kgaa|kk|limited|llc|llp|lp|ltd|ltda|mbh|nv|ohg|oy|oyj|plc|pllc|pte|pty|pvt|sa|sab|sarl|sas|sasu|se|sl|sp|spa|spzoo|'
        || 'srl|sro|ug|ulc|zoo|and))+$' AS legal_forms,

    entity AS
    (
        SELECT
            CAST(ifNull(toDateOrNull(replaceAll(extract(_path, '.*/[0-9]{4}/.*(20[0-9]{2}-?[01][0-9]-?[0-3][0-9])'), '-', '')),
                toDate({day:String})), 'Date') AS day,
            `LEI` AS lei, `Entity.LegalName` AS title, `Entity.EntityStatus` = 'ACTIVE' AS active,
            `Entity.EntityCategory` = 'SOLE_PROPRIETOR' AS is_person,
            `Entity.EntityCategory` NOT IN ('FUND', 'BRANCH', 'SOLE_PROPRIETOR')
                AND `Registration.RegistrationStatus` NOT IN ('DUPLICATE', 'ANNULLED')
                AS by_name,
            -- The name as scoring/source/companyname.go normalises it.
            trimBoth(replaceRegexpAll(replaceRegexpAll(replaceAll(lowerUTF8(title), '&', ' and '), '[.\'’]', ''), '[^\\p{L}\\p{N}]+', ' '))
                AS words,
            replaceRegexpOne(replaceRegexpOne(words, legal_forms, ''), '^the ', '') AS plain
        FROM file({list:String}, 'CSVWithNames',
            '`LEI` String, `Entity.LegalName` String, `Entity.EntityCategory` String, `Entity.EntityStatus` String,
                `Registration.RegistrationStatus` String')
        ORDER BY day DESC
        LIMIT 1 BY lei
    ),

    identifier AS
    (
        SELECT domain, kind, value FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
    ),

    known AS
    (
        SELECT value AS lei, domain, 1 AS way FROM identifier WHERE kind = 'lei'
        UNION ALL
        SELECT lei, domain, 2 AS way
        FROM
        (
            SELECT replaceAll(plain, ' ', '') AS name,
                multiIf(count() = 1, any(entity.lei), countIf(active) = 1, anyIf(entity.lei, active), '') AS lei
            FROM entity
            WHERE by_name AND position(plain, ' ') > 0
            GROUP BY name
            HAVING lei != ''
        ) AS e
        INNER JOIN
        (
            SELECT value AS name, any(identifier.domain) AS domain FROM identifier WHERE kind = 'name' GROUP BY name HAVING count() = 1
        ) AS n USING name
        WHERE domain NOT IN (SELECT domain FROM identifier WHERE kind = 'lei')
    )
SELECT
    if(unmatched = '', k.domain, '') AS domain,
    toString(day) AS as_of,
    lei,
    toUInt8(active) AS `signal:legal_entity_registered`,
    multiIf(
        k.domain = '', 'no company has this LEI or name',
        row_number() OVER (PARTITION BY k.domain ORDER BY way, active DESC, lei) > 1, 'another entity of the company',
        '') AS unmatched,
    if(is_person, concat('LEI ', lei), concat(title, ', LEI ', lei)) AS subject -- the name of a person is not stored
FROM entity LEFT JOIN known AS k USING lei
