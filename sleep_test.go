package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sleeps matches a wait for a fixed time.
var sleeps = regexp.MustCompile(`\btime\.Sleep\(`)

// sleepers are the files that sleep for another reason than to wait.
var sleepers = []string{
	"contract/cold_bench_test.go",  // a benchmark sends requests at a rate
	"internal/queue/crash_test.go", // workers are killed at random moments
}

// TestTestsWaitForEvents checks that no test sleeps. A sleep is too short when the machine is busy, and too long when it is not. Tests in
// a bubble of testing/synctest sleep without waiting.
func TestTestsWaitForEvents(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || slices.Contains(sleepers, filepath.ToSlash(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && sleeps.Match(text) && !strings.Contains(string(text), `"testing/synctest"`) && path != "sleep_test.go" {
			t.Errorf("%s: a test sleeps; wait for an event with internal/test/wait", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
