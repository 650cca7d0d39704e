package source

// NeededTogether returns the signals that need several sources, with these.
func NeededTogether() map[string][]string {
	needs := make(map[string][]string)
	for _, c := range combinations {
		needs[c.signal] = c.needs
	}
	return needs
}

// TrustOf returns the order of trust of a kind of claim.
func TrustOf(kind Kind) []string { return trust[kind] }
