-- name: facts_written
-- Number of layers that an import wrote or removed. params: import String. columns: layers; one row.
SELECT count() AS layers FROM company_facts FINAL WHERE import_id = {import:String}
