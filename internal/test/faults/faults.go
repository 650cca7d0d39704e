// Package faults has no code of its own. Its test kills and freezes the parts of a
// live `companyscore up` under load, writes every answer into a ledger, and compares
// the ledger with the stored data. `make faults` runs it.
package faults
