-- How columns are cut into blocks, and when parts are merged. Parts take a new size as they are merged; docs/adr/0009 has the numbers.
--
-- Reads of single companies unpack one block of each column. Blocks of 64 kB hold some thirty granules of a number, of which one is
-- wanted: in a table of ten million companies a query for fifty of them took three to five times as long as with blocks of 2 kB, which
-- need a fifth more room.
ALTER TABLE score_latest MODIFY SETTING min_compress_block_size = 2048, max_compress_block_size = 131072;

-- A file is written in pieces as large as the largest block. Linux may not take the processor from a program within one write, and
-- for a megabyte that was up to 10 ms: while ten million notes were written, threads of all other programs waited so long one time in six.
ALTER TABLE score_history MODIFY SETTING max_compress_block_size = 131072;
ALTER TABLE universe_record MODIFY SETTING max_compress_block_size = 131072;
ALTER TABLE universe_company MODIFY SETTING max_compress_block_size = 131072;

-- What came since the last batch is looked for in the parts that hold some of it. Parts of more than 256 MB, some eight million records, are
-- left as they are, so that a few new records never lie in one part with all old ones.
ALTER TABLE universe_record MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 268435456;
