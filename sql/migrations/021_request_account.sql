-- An index by account, for the list of the newest requests of one account: the table is
-- sorted by time, and without it the list of a rare caller would read all of a day.
ALTER TABLE request ADD INDEX IF NOT EXISTS by_account account_id TYPE set(64) GRANULARITY 1;
