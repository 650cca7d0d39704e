-- What "latest per company" and "newest before an instant" want: the score in the index, so that movers never visit the table.
CREATE INDEX score_history_newest ON score_history (domain, scored_at DESC, written_at DESC) INCLUDE (composite);
-- The table in the order of that index, so that the records of a company lie side by side. PostgreSQL does not keep it so: a table that
-- grows by new records is in the order of their coming, which is what CLUSTER=0 measures.
\if :cluster
CLUSTER score_history USING score_history_newest;
\endif
VACUUM (ANALYZE) score_history;
CHECKPOINT;
