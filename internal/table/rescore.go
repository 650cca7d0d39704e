package table

// RescoreAmount is the number of records to rescore.
type RescoreAmount struct {
	// Pending counts records that have signals, and no record of the new version with the same
	// time.
	Pending uint64
	// Bare counts records without signals. They cannot be scored again.
	Bare uint64
}
