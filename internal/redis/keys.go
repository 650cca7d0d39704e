package redis

import "time"

// prefix begins every Redis key of the service. It has a version, so that keys of two
// meanings can coexist. Keys that one script uses together have the same hash tag, so
// that they share a slot in a cluster: the cold path is one slot, the reads of each
// account are another.
const prefix = "cs:1:"

// Job holds one job: HASH, expires with the job.
func Job(id string) string { return prefix + "{cold}:job:" + id }

// Run holds one run and its state: HASH, lives as long as its jobs.
func Run(id string) string { return prefix + "{cold}:run:" + id }

// InFlight names the open run of a domain: STRING.
func InFlight(domain string) string { return prefix + "{cold}:inflight:" + domain }

// Lane lists the runs that wait in a lane: ZSET of run ids by turn.
func Lane(lane string) string { return prefix + "{cold}:lane:" + lane }

// Turns counts the waiting runs of a lane: HASH of counts by owner and, as clock, the
// turn claimed last.
func Turns(lane string) string { return prefix + "{cold}:turns:" + lane }

// Leases lists the running runs: ZSET of run ids by the end of their lease, in unix ms
// on the clock of Redis.
func Leases() string { return prefix + "{cold}:leases" }

// Retries lists the runs whose last attempt failed: ZSET of run ids by the start of
// the next in unix ms on the clock of Redis.
func Retries() string { return prefix + "{cold}:retries" }

// RunLog lists the ended runs that are not yet in the run log: SET of run ids.
func RunLog() string { return prefix + "{cold}:runlog" }

// ColdLedger holds the cold calls that are not yet in the ledger: HASH of JSON by job id.
func ColdLedger() string { return prefix + "{cold}:ledger" }

// Bulk holds an admitted call for many companies: HASH, expires a day after its jobs are open.
func Bulk(id string) string { return prefix + "{cold}:bulk:" + id }

// OpenBulks lists the calls for many companies whose jobs are not all open: ZSET of ids by unix ms.
func OpenBulks() string { return prefix + "{cold}:bulks" }

// Idempotency holds the answer to a POST with an Idempotency-Key: HASH, expires after a
// day. keyHash is the hex of the SHA-256 of the key.
func Idempotency(account, keyHash string) string {
	return prefix + "{cold}:idem:" + account + ":" + keyHash
}

// ColdMonth counts an account's cold calls of one calendar month: STRING.
func ColdMonth(account, period string) string {
	return prefix + "{cold}:month:" + account + ":" + period
}

// ColdKeyWindow lists a key's recent cold calls: ZSET of job ids by unix ms.
func ColdKeyWindow(key string) string { return prefix + "{cold}:key:" + key }

// ColdAccountWindow lists an account's recent cold calls: ZSET of job ids by unix ms.
func ColdAccountWindow(account string) string { return prefix + "{cold}:account:" + account }

// CachedMonth counts an account's cached calls of one calendar month: HASH of the
// count and, per server, the number of its last batch that was added.
func CachedMonth(account, period string) string {
	return prefix + "cached:{" + account + "}:" + period
}

// Score holds the rendered latest score of a domain: STRING.
func Score(domain string) string { return prefix + "score:" + domain }

// BatchLock is the lock of a batch job, held by the process that runs it: HASH of the fields that
// take_lock.lua lists.
func BatchLock(job string) string { return prefix + "batch:leader:" + job }

// BatchStatus holds the last result of each batch job: HASH of JSON by job.
func BatchStatus() string { return prefix + "batch:status" }

// RefreshPaced is until when the refresh job has used up its pace: STRING, unix ms.
func RefreshPaced() string { return prefix + "batch:refresh:paced" }

// InboxImports lists the imports of the inbox job whose changed companies wait for their runs: SET of
// ids of imports.
func InboxImports() string { return prefix + "batch:inbox:imports" }

// InboxChanged lists the companies whose facts an import changes and that have no run yet: LIST of domains.
func InboxChanged(importID string) string { return prefix + "batch:inbox:changed:" + importID }

// Spreads holds how the signals of the universe spread: STRING, a gob of scoring.Spreads.
func Spreads() string { return prefix + "{universe}:spreads" }

// Universe holds the published snapshot of the statistics of all companies: HASH of the fields
// that publish.lua lists.
func Universe() string { return prefix + "universe" }

// SourceQuota limits the requests of all workers to one provider: STRING of two instants
// in µs on the clock of Redis: the end of the turns given out, and the time of the write.
func SourceQuota(quota string) string { return prefix + "source:" + quota }

// ConsoleLink holds what a sign-in link of the console is for: STRING of JSON, expires with
// the link. hash is the hex of the SHA-256 of its token.
func ConsoleLink(hash string) string { return prefix + "{console}:link:" + hash }

// ConsoleSession holds a session of the console: STRING of JSON, expires with the session.
// hash is the hex of the SHA-256 of its id.
func ConsoleSession(hash string) string { return prefix + "{console}:session:" + hash }

// ConsoleWrongLinks counts the wrong links that a client address tried: STRING, expires a
// minute after the first.
func ConsoleWrongLinks(address string) string { return prefix + "console:wrong:" + address }

// Events is the pub/sub channel on which servers tell each other what changed.
const Events = prefix + "events"

// Period names the calendar month of t in UTC, in the form YYYY-MM.
func Period(t time.Time) string { return t.UTC().Format("2006-01") }

// SourceStatus holds the status of each source that workers ask: HASH of JSON by source.
func SourceStatus() string { return prefix + "sources" }
