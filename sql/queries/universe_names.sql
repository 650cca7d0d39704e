-- name: universe_names
-- What companies are called by given records, one row each. The stamp of a record is in two halves.
-- params: version String, companies Array(UInt64), stamp_highs Array(UInt64) and stamp_lows Array(UInt64), one each for a company.
SELECT company, domain, company_name AS name, sector, geo_scope, toString(profile) AS profile
FROM universe_record
PREWHERE company IN {companies:Array(UInt64)}
WHERE _partition_value.1 = {version:String} AND (company, toUInt64(bitShiftRight(stamp, 64)), toUInt64(stamp))
    IN arrayZip({companies:Array(UInt64)}, {stamp_highs:Array(UInt64)}, {stamp_lows:Array(UInt64)})
LIMIT 1 BY company
SETTINGS max_read_buffer_size_local_fs = 16384, max_threads = 8
