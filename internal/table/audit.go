package table

import "time"

// Action is the kind of a change in the audit log.
type Action string

// The actions.
const (
	SignIn         Action = "sign_in"
	SignOut        Action = "sign_out"
	KeyCreated     Action = "key_created"
	KeyRevoked     Action = "key_revoked"
	AccountCreated Action = "account_created"
	PlanChanged    Action = "tier_changed"
	ImportStarted  Action = "import_started"
	ScoreStarted   Action = "score_started"
)

// AuditEntry is one change that a person made in the console or at the command line.
type AuditEntry struct {
	At        time.Time
	AccountID string // of the session
	// AccountName is set in entries that were read.
	AccountName string
	Operator    bool
	Session     string // first characters of the hash of the session; empty for a command
	Address     string // of the client, or "command line" with the user of the system
	Action      Action
	Subject     string // id of a key or account, or a domain; empty for sign-ins
	Detail      string // such as the new plan
}
