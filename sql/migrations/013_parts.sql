-- What came since the last batch is looked for in the parts that hold some of it. Parts of more than 256 MB, some six million records, are
-- left as they are, so that a few new records never lie in one part with all old ones.
ALTER TABLE universe_record MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 268435456;
