package cmd

import "github.com/spf13/cobra"

// benchCommands are the subcommands of `bench`.
type benchCommands struct{ *program }

// bench returns the command `bench` with its subcommands.
func (c *program) bench() *cobra.Command {
	b := &benchCommands{c}
	cmd := &cobra.Command{Use: "bench", Short: "Measure a running service and compare results"}
	cmd.AddCommand(b.seed(), b.run(), b.peers(), b.compare(), b.report(), b.nullServer(), b.peerServer())
	return cmd
}
