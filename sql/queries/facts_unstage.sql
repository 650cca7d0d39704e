-- name: facts_unstage
-- Drops the staged rows of an import. params: import String.
ALTER TABLE facts_staged DROP PARTITION {import:String}
