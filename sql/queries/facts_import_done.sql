-- name: facts_import_done
-- Whether an import is complete. params: import String. columns: done; one row.
SELECT count() AS done FROM facts_import FINAL WHERE import_id = {import:String} AND state = 'done'
