-- recipe: gleif-relationships
-- publisher: Global Legal Entity Identifier Foundation
-- documentation: https://www.gleif.org/en/lei-data/gleif-golden-copy/download-the-golden-copy
-- licence: CC0-1.0
-- format: CSV of level 2 (rr), plain or in a zip archive; the day in the name of the file
-- signals: corporate_group_size
-- file list: *rr*.csv [required: Relationship.StartNode.NodeID, Relationship.EndNode.NodeID, Relationship.RelationshipType, Relationship.RelationshipStatus]
--
-- The number of direct children of a company, found by its LEI: import gleif-golden-copy before. Wikidata can know more, and the larger
-- number counts (scoring/source/combine.go), so that it is a lower bound. The day is in the name of the file, as 2026-08-22 or 20260822;
-- else it is the day of the import.
WITH
    parent AS
    (
        SELECT
            ifNull(toDateOrNull(replaceAll(extract(_path, '.*/[0-9]{4}/.*(20[0-9]{2}-?[01][0-9]-?[0-3][0-9])'), '-', '')),
                toDate({day:String})) AS day,
            `Relationship.EndNode.NodeID` AS lei, uniqExact(`Relationship.StartNode.NodeID`) AS children
        FROM file({list:String}, 'CSVWithNames',
            '`Relationship.StartNode.NodeID` String, `Relationship.EndNode.NodeID` String,
                `Relationship.RelationshipType` String, `Relationship.RelationshipStatus` String')
        WHERE `Relationship.RelationshipType` = 'IS_DIRECTLY_CONSOLIDATED_BY' AND `Relationship.RelationshipStatus` = 'ACTIVE'
        GROUP BY day, lei
        ORDER BY day DESC
        LIMIT 1 BY lei
    ),

    known AS
    (
        SELECT value AS lei, domain
        FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
        WHERE kind = 'lei'
    )
SELECT
    if(unmatched = '', k.domain, '') AS domain,
    toString(day) AS as_of,
    concat('>=', toString(children)) AS `signal:corporate_group_size`,
    multiIf(
        k.domain = '', 'no company has this LEI',
        row_number() OVER (PARTITION BY k.domain ORDER BY children DESC, lei) > 1, 'another entity of the company',
        '') AS unmatched,
    concat('LEI ', lei) AS subject
FROM parent LEFT JOIN known AS k USING lei
