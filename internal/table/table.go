// Package table has the rows of ClickHouse tables, and the arguments and results of queries, that several rooms use and that belong
// to none of them: answered requests, usage, the audit log, runs of batch jobs, target ages, and generated universes. Records and runs
// are in scoring, accounts and keys in internal/account.
package table
