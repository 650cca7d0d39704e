package release

import (
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"

	"companyscore/internal/test/program"
)

func TestCommitOfBuildInformation(t *testing.T) {
	t.Parallel()
	for want, settings := range map[string][]debug.BuildSetting{
		"unknown":    nil,
		"4b825dc":    {{Key: "vcs.revision", Value: "4b825dc"}, {Key: "vcs.modified", Value: "false"}},
		"ab12-dirty": {{Key: "vcs.revision", Value: "ab12"}, {Key: "vcs.modified", Value: "true"}},
	} {
		if got := commitOf(&debug.BuildInfo{Settings: settings}); got != want {
			t.Errorf("commit of %v is %q, want %q", settings, got, want)
		}
	}
}

// TestLinkerSetsVersionAndCommit builds the program with the flags of the Makefile and the Dockerfile.
func TestLinkerSetsVersionAndCommit(t *testing.T) {
	t.Parallel()
	const flags = "-X companyscore/internal/release.version=v1.2.3 -X companyscore/internal/release.commit=4b825dc"
	path, err := program.Build(t.TempDir(), "-ldflags", flags)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "--version").Output()
	if want := "companyscore v1.2.3, commit 4b825dc, " + runtime.Version() + "\n"; err != nil || string(out) != want {
		t.Errorf("--version prints %q, %v; want %q", out, err, want)
	}
}
