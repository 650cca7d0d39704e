-- All pipeline versions. The one with the largest number is current. Public views select the
-- records of the current version, because scores of different versions are not comparable.
-- A new version is a new migration that inserts a row; docs/operations.md has the other steps.
CREATE TABLE IF NOT EXISTS pipeline_version
(
    number UInt32 COMMENT 'Order of the versions; the largest is the current one',
    version String COMMENT 'Name of the version, as in the column pipeline_version of records',
    changes String COMMENT 'Difference from the previous version',
    since DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When the migration inserted the row'
)
ENGINE = ReplacingMergeTree
ORDER BY number
COMMENT 'Pipeline versions. Private: query v1_freshness.';

INSERT INTO pipeline_version (number, version, changes)
SELECT 1, 'v1', 'The first one'
UNION ALL
SELECT 2, 'v2', 'Curves of seven signals of finance are counted from filings; total assets take the place of missing revenue in the premium';
