-- Notes of 54 instead of 94 bytes a company: of the records before each window they keep the scores, not the stamps. A batch of changes
-- reads all notes, and a count of everything writes them, so both get cheaper by as much.
--
-- The scores are enough as long as records come in the order in which they were made: what a window passes is newer than all it
-- has passed before. A company that gets a record older than the start of a window is counted from all its records instead (sign 2).
-- Parts of more than 16 MB, some three hundred thousand companies, are not merged any further. Those of a count of everything hold
-- companies of different ranges, so that nothing is found sooner when they are one.
-- Notes can be emptied at any time: the next batch counts everything anew.
DROP TABLE IF EXISTS universe_company;

CREATE TABLE universe_company
(
    generation UInt64 COMMENT 'Count of everything that this row belongs to' CODEC(LZ4),
    position UInt64 COMMENT 'Batch that wrote the row: later batches have larger numbers. The first of a generation has its number' CODEC(LZ4),
    company UInt64 COMMENT 'cityHash64 of the domain' CODEC(NONE),
    sign Int8 COMMENT '1: counted from this batch on. -1: no longer counted. 0: a record that this batch takes into account. 2: one of the past, for which all records of the company are' CODEC(LZ4),
    latest UInt128 COMMENT 'Stamp of the newest record, as in universe_record' CODEC(NONE),
    standing UInt128 COMMENT 'Its cohort, premium_bin and bucket scores in one number, as in universe_record' CODEC(NONE),
    before UInt64 COMMENT 'before_7d, before_30d and before_90d in one number, 16 bits each' CODEC(NONE),
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
    before_7d UInt16 ALIAS toUInt16(bitAnd(before, 65535)) COMMENT 'Score of the newest record before the window of 7 days in hundredths; 65535 when there is none',
    before_30d UInt16 ALIAS toUInt16(bitAnd(bitShiftRight(before, 16), 65535)) COMMENT 'The same for 30 days',
    before_90d UInt16 ALIAS toUInt16(bitAnd(bitShiftRight(before, 32), 65535)) COMMENT 'The same for 90 days',
    INDEX by_position position TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY generation
ORDER BY (company, position)
SETTINGS index_granularity = 1024, max_compress_block_size = 131072, max_bytes_to_merge_at_max_space_in_pool = 16777216
COMMENT 'Notes of the batch jobs on each company. Private; can be emptied at any time, the next batch counts anew.';
