-- What the batch jobs have counted of each company, and how far: their notes, which spare them to read all history again.
--
-- A generation is one count of everything and all batches that built on it; it is a partition, and the one before is dropped.
-- A batch notes the records that came (sign 0), and then, for each company that changed, the standing that it now counts (sign 1)
-- and the one it no longer does (sign -1). The newest standing of a company up to a batch is the row of sign 1 with the
-- largest latest.
-- A batch that died has left rows with a number that nobody refers to; whoever reads gives the number up to which to read.
-- Not compressed: the rows of a count of everything are written, read a few times and dropped, and packing them took as long
-- as finding them out; docs/adr/0009 has the numbers.
CREATE TABLE IF NOT EXISTS universe_company
(
    generation UInt64 COMMENT 'Count of everything that this row belongs to' CODEC(LZ4),
    position UInt64 COMMENT 'Batch that wrote the row: later batches have larger numbers. The first of a generation has its number' CODEC(LZ4),
    company UInt64 COMMENT 'cityHash64 of the domain' CODEC(NONE),
    sign Int8 COMMENT '1: counted from this batch on. -1: no longer counted. 0: a record that this batch takes into account' CODEC(LZ4),
    latest UInt128 COMMENT 'Stamp of the newest record, as in universe_record' CODEC(NONE),
    standing UInt128 COMMENT 'Its cohort, premium_bin and bucket scores in one number, as in universe_record' CODEC(NONE),
    before_7d UInt128 COMMENT 'Stamp of the newest record before the window of 7 days; 0 when there is none' CODEC(NONE),
    before_30d UInt128 COMMENT 'The same for 30 days' CODEC(NONE),
    before_90d UInt128 COMMENT 'The same for 90 days' CODEC(NONE),
    delta_7d Int16 COMMENT 'Change of the score within 7 days in hundredths; 0 for companies that cannot be compared' CODEC(NONE),
    delta_30d Int16 COMMENT 'The same for 30 days' CODEC(NONE),
    delta_90d Int16 COMMENT 'The same for 90 days' CODEC(NONE),
    composite UInt16 ALIAS toUInt16(bitAnd(toUInt64(latest), 16383)) COMMENT 'The score in hundredths',
    cohort UInt64 ALIAS toUInt64(bitShiftRight(standing, 64)) COMMENT 'Group of peers, as in universe_record',
    premium_bin UInt8 ALIAS toUInt8(bitAnd(bitShiftRight(toUInt64(standing), 56), 255)) COMMENT 'Scale premium in whole points, 0 to 11; 12 counts as 11',
    team_structure UInt16 ALIAS toUInt16(bitAnd(bitShiftRight(toUInt64(standing), 42), 16383)) COMMENT 'Bucket score in hundredths',
    market_position UInt16 ALIAS toUInt16(bitAnd(bitShiftRight(toUInt64(standing), 28), 16383)) COMMENT 'Bucket score in hundredths',
    momentum_tailwinds UInt16 ALIAS toUInt16(bitAnd(bitShiftRight(toUInt64(standing), 14), 16383)) COMMENT 'Bucket score in hundredths',
    financial_health UInt16 ALIAS toUInt16(bitAnd(toUInt64(standing), 16383)) COMMENT 'Bucket score in hundredths',
    INDEX by_position position TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY generation
ORDER BY (company, position)
SETTINGS index_granularity = 1024
COMMENT 'Notes of the batch jobs on each company. Private; can be emptied at any time, the next batch counts anew.';
