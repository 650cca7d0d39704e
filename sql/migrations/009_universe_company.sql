-- What the batch jobs have counted of each company, and how far: their notes, which spare them to read all history again.
--
-- A generation is one count of everything and all batches that built on it; it is a partition, and the one before is dropped.
-- A batch adds, for each company that changed, the standing that it now counts (sign 1) and the one it no longer does
-- (sign -1). The newest standing of a company up to a position is the row of sign 1 with the largest latest.
-- A batch that died has left rows of a position that nobody refers to; whoever reads gives the position up to which to read.
-- A stamp orders records and carries the score: (scored_at in ms << 64) + (written_at in ms << 14) + composite in hundredths.
CREATE TABLE IF NOT EXISTS universe_company
(
    generation UInt64 COMMENT 'Count of everything that this row belongs to',
    position UInt64 COMMENT 'Last block of universe_record that was counted when the row was written',
    company UInt64 COMMENT 'cityHash64 of the domain' CODEC(LZ4),
    sign Int8 COMMENT '1: counted from this position on. -1: no longer counted',
    latest UInt128 COMMENT 'Stamp of the newest record' CODEC(LZ4),
    cohort UInt64 COMMENT 'Group of peers, as in universe_record' CODEC(LZ4),
    composite UInt16 COMMENT 'The score in hundredths' CODEC(LZ4),
    premium_bin UInt8 COMMENT 'Scale premium in whole points, 0 to 11; 12 counts as 11' CODEC(LZ4),
    team_structure UInt16 COMMENT 'Bucket score in hundredths' CODEC(LZ4),
    market_position UInt16 COMMENT 'Bucket score in hundredths' CODEC(LZ4),
    momentum_tailwinds UInt16 COMMENT 'Bucket score in hundredths' CODEC(LZ4),
    financial_health UInt16 COMMENT 'Bucket score in hundredths' CODEC(LZ4),
    before_7d UInt128 COMMENT 'Stamp of the newest record before the window of 7 days; 0 when there is none' CODEC(LZ4),
    before_30d UInt128 COMMENT 'The same for 30 days' CODEC(LZ4),
    before_90d UInt128 COMMENT 'The same for 90 days' CODEC(LZ4),
    delta_7d Int16 COMMENT 'Change of the score within 7 days in hundredths; 0 for companies that cannot be compared' CODEC(LZ4),
    delta_30d Int16 COMMENT 'The same for 30 days' CODEC(LZ4),
    delta_90d Int16 COMMENT 'The same for 90 days' CODEC(LZ4),
    INDEX by_position position TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY generation
ORDER BY (company, position)
SETTINGS index_granularity = 1024
COMMENT 'Notes of the batch jobs on each company. Private; can be emptied at any time, the next batch counts anew.';
