package source

// Names of Result.Values that are read again. A source may use any other name as
// well; all are kept and shown to operators. Across sources a value is named
// "source.name", such as "jobs.open_roles".
const (
	// ValueHiringRegions is how many world regions the open roles name.
	ValueHiringRegions = "hiring_regions"
	// ValueOpenRoles is how many roles were open; jobs compares it with the one of
	// 60 to 120 days before.
	ValueOpenRoles = "open_roles"
)
