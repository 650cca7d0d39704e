package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"companyscore/internal/config"
)

// next prints on standard error the command that usually follows one that succeeded: the words after the name of the program. It adds
// --data if this command was given one.
func next(cmd *cobra.Command, words ...string) {
	data := cmd.Flag("data")
	if data != nil && data.Changed && os.Getenv(config.EnvName("data")) != data.Value.String() {
		words = append(words, "--data", data.Value.String())
	}
	name := "companyscore"
	if filepath.Base(os.Args[0]) == name {
		name = os.Args[0] // such as bin/companyscore
	}
	text := "Next: " + shellWord(name)
	for _, word := range words {
		text += " " + shellWord(word)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), text)
}

// shellWord quotes a word for a shell if it must be.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
