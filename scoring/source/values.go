package source

// Names of Result.Values that the program reads. Sources can use other names too; all are stored
// and shown to operators. Across sources the name is "source.name", such as "jobs.open_roles".
const (
	// ValueHiringRegions is the number of world regions in the open roles.
	ValueHiringRegions = "hiring_regions"
	// ValueOpenRoles is the number of open roles. jobs compares it with that of a run 60 to 120
	// days earlier.
	ValueOpenRoles = "open_roles"
)
