-- name: universe_gone
-- Companies whose standing changed and that may have been among the first before: those that reached a floor.
-- floors: cohorts Array(UInt64) with floors Array(UInt16), a composite each, 0 for other cohorts; up_7d, down_7d, up_30d, down_30d, up_90d,
-- down_90d Int16, of which a change is at least or at most one.
-- params: generation UInt64, note UInt64, floors.
SELECT company FROM universe_company
WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND was_standing != 0
    AND (was_composite >= transform(was_cohort, {cohorts:Array(UInt64)}, {floors:Array(UInt16)}, toUInt16(0))
            OR was_delta_7d >= {up_7d:Int16} OR was_delta_7d <= {down_7d:Int16} OR was_delta_30d >= {up_30d:Int16} OR was_delta_30d <= {down_30d:Int16}
            OR was_delta_90d >= {up_90d:Int16} OR was_delta_90d <= {down_90d:Int16})
