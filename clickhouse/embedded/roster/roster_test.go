package roster_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"companyscore/clickhouse/embedded/roster"
)

func TestRosterKeepsHashesOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "analysts.json")
	if all, err := roster.Read(path); err != nil || len(all) != 0 {
		t.Fatalf("without a file: %v, %v", all, err)
	}
	password, err := roster.Add(path, "bob", roster.Limits{Seconds: 5}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	all, err := roster.Read(path)
	sum := sha256.Sum256([]byte(password))
	if err != nil || len(all) != 1 || all[0].PasswordSHA256 != hex.EncodeToString(sum[:]) || all[0].Limits.OrDefault().Seconds != 5 ||
		all[0].Limits.OrDefault().Rows != roster.Default.Rows {
		t.Errorf("%+v, %v", all, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), password) {
		t.Errorf("the file has the password: %s, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := roster.Add(path, "bob", roster.Limits{}, time.Now()); !errors.Is(err, roster.ErrExists) {
		t.Errorf("a second bob: %v", err)
	}
	for _, name := range []string{"", "analyst", "companyscore", "default", "a b", "1a", "a'b", strings.Repeat("a", 65)} {
		if _, err := roster.Add(path, name, roster.Limits{}, time.Now()); !errors.Is(err, roster.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := roster.Remove(path, "bob"); err != nil {
		t.Error(err)
	}
	if err := roster.Remove(path, "bob"); !errors.Is(err, roster.ErrUnknown) {
		t.Errorf("a second removal: %v", err)
	}
}

func TestConcurrentChangesAreAllKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "analysts.json")
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		wg.Go(func() {
			if _, err := roster.Add(path, name, roster.Limits{}, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := roster.Read(path); err != nil || len(all) != 6 {
		t.Errorf("%+v, %v", all, err)
	}
}
