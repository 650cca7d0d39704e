package cmd

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"

	"companyscore/internal/config"
)

func TestNextCommandCanBePasted(t *testing.T) {
	t.Setenv("COMPANYSCORE_DATA", "of the environment")
	f := func(want, data string, words ...string) {
		t.Helper()
		var stderr bytes.Buffer
		cmd := &cobra.Command{Use: "x"}
		cmd.SetErr(&stderr)
		cmd.Flags().String("data", config.DefaultData, "")
		if data != "" {
			if err := cmd.Flags().Set("data", data); err != nil {
				t.Fatal(err)
			}
		}
		if next(cmd, words...); stderr.String() != "Next: companyscore "+want+"\n" {
			t.Errorf("%q, %v: %q", data, words, stderr.String())
		}
	}
	f("score apple.com", "", "score", "apple.com")
	f("score apple.com", "of the environment", "score", "apple.com")
	f("score apple.com --data ./other", "./other", "score", "apple.com")
	f(`run start --from 'my file'\''s.csv' ''`, "", "run", "start", "--from", "my file's.csv", "")
}
