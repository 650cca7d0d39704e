-- name: universe_position
-- The last insert into universe_record that can be seen, and how many rows all inserts up to it brought, 1 row.
SELECT max(max_block_number) AS position, sum(rows) AS records
FROM system.parts
WHERE active AND database = currentDatabase() AND table = 'universe_record'
