-- The texts by which a company is found: its domain, and its name in lower case.
--
-- Sort key: a search for a prefix reads one short range, whatever the number of companies.
-- A materialized view fills the table. A company that gets another name keeps the row of the
-- old one: a search compares its rows with the newest records.
CREATE TABLE IF NOT EXISTS company_search
(
    text String COMMENT 'Domain, or company name in lower case' CODEC(ZSTD(1)),
    domain String COMMENT 'Canonical host name of the company' CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (text, domain)
SETTINGS index_granularity = 512
COMMENT 'Domains and names of companies, sorted for a search by prefix. Private.';

CREATE MATERIALIZED VIEW IF NOT EXISTS company_search_feed TO company_search
AS SELECT arrayJoin([domain, lowerUTF8(company_name)]) AS text, domain FROM score_history;
