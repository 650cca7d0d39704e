package cmd

import (
	"runtime"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/release"
)

// build is the version of this program.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

var buildColumns = []cli.Column[build]{
	{Name: "version", Value: func(b build) any { return b.Version }},
	{Name: "commit", Value: func(b build) any { return b.Commit }},
	{Name: "go", Value: func(b build) any { return b.Go }},
}

// versionCommand returns the command.
func versionCommand() *cobra.Command {
	var format cli.Output
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version and the commit of this program", Args: cobra.NoArgs,
		Example: "  companyscore version\n  companyscore version --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.PrintRecord(cmd.OutOrStdout(), format, build{release.Version(), release.Commit(), runtime.Version()},
				cmd.Root().Name()+" "+release.String(), buildColumns)
		},
	}
	format.Flag(cmd)
	return cmd
}
