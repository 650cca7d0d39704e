package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
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
	path := filepath.Join(t.TempDir(), "companyscore")
	const flags = "-X companyscore/internal/release.version=v1.2.3 -X companyscore/internal/release.commit=4b825dc"
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", flags, "-o", path, "companyscore")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as other tests build it, so that they share the packages
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), path, "--version").Output()
	if want := "companyscore v1.2.3, commit 4b825dc, " + runtime.Version() + "\n"; err != nil || string(out) != want {
		t.Errorf("--version prints %q, %v; want %q", out, err, want)
	}
}
