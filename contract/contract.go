// Package contract has no code of its own. Its tests hold a live `companyscore up`
// against the specification of the interface, rule by rule, and every answer
// against the OpenAPI document. `make contract` prints one line for each rule.
package contract
