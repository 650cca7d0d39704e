// Package release names the version and the commit of this build.
package release

import (
	"runtime"
	"runtime/debug"
)

// version and commit are set by the linker. The Makefile and the Dockerfile have the flags.
var version, commit string

// Version returns the version of this build, "dev" if it is not of a tagged commit.
func Version() string {
	if version == "" {
		return "dev"
	}
	return version
}

// Commit returns the commit of this build, with "-dirty" if the tree had changes. Without the
// linker's flags it is read from the build information. It is "unknown" if neither has it.
func Commit() string {
	if commit != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return commitOf(info)
}

func commitOf(info *debug.BuildInfo) string {
	revision, changed := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	return revision + changed
}

// String returns version, commit and Go version: "dev, commit 4b825dc6, go1.26.0".
func String() string {
	return Version() + ", commit " + Commit() + ", " + runtime.Version()
}
