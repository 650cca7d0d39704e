-- Share of each signal in the composite before the premium. The program computes it, so a statement can
-- add contributions without the weights and the rules of the version. Records before this column have 0.
-- On disk it takes a tenth of a byte for each signal, because most records of a sector have the same shares.
ALTER TABLE score_history
    ADD COLUMN IF NOT EXISTS `signal.share` Array(Float64) COMMENT 'Share of the signal in base, 0 to 1; 0 if not applicable. The shares of a record sum to 1'
    CODEC(ZSTD(1)) AFTER `signal.observed_at`;
