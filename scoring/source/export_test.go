package source

// NeededTogether lists the signals that need several sources at once, with them.
func NeededTogether() map[string][]string {
	needs := make(map[string][]string)
	for _, c := range combinations {
		needs[c.signal] = c.needs
	}
	return needs
}

// TrustOf is the order of trust of a kind of claim.
func TrustOf(kind Kind) []string { return trust[kind] }
