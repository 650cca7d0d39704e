package api

import "companyscore/scoring"

// Changes is the difference between two records of a company.
type Changes struct {
	Mode   string       `json:"mode,omitempty"`
	Domain string       `json:"domain"`
	From   ChangeRecord `json:"from"`
	To     ChangeRecord `json:"to"`
	scoring.Attribution
	Signals []scoring.SignalChange `json:"signals"`
}

// ChangeRecord is a record that is compared.
type ChangeRecord struct {
	ScoredAt     Time           `json:"scored_at"`
	Composite    float64        `json:"composite_score"`
	ScalePremium float64        `json:"scale_premium"`
	Rating       scoring.Rating `json:"svc_rating"`
}

// NewChanges returns the difference between two records of a company.
func NewChanges(from, to scoring.Record) Changes {
	a := scoring.Attribute(from, to)
	return Changes{Domain: to.Domain, From: newChangeRecord(from), To: newChangeRecord(to), Attribution: a,
		Signals: append([]scoring.SignalChange{}, a.Signals...)}
}

func newChangeRecord(rec scoring.Record) ChangeRecord {
	return ChangeRecord{ScoredAt: Time(rec.ScoredAt), Composite: rec.Composite, ScalePremium: rec.ScalePremium, Rating: rec.Rating}
}
