// Package meter decides what a customer may do and counts what they did.
//
// It holds the table of tiers and breakers, admits cold calls with one atomic
// script, counts cached calls in the process and adds them to Redis every tenth
// of a second, and keeps a lasting copy of all counts in a [Ledger].
//
// Redis is where the counts live. When it has no counters for an account, they
// are filled in from the ledger before anything is counted or admitted, so that
// emptying Redis gives nobody a new budget.
package meter
