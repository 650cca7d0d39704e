// Package command is the command line of the bench: it reads flags, runs what they ask
// for and prints the result.
package command

import (
	"context"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"companyscore/internal/account"
	"companyscore/internal/config"
	"companyscore/internal/seed"
)

// Store is what `bench seed` writes to.
type Store interface {
	seed.Store
	io.Closer
	// Put stores accounts, PutKey keys.
	Put(ctx context.Context, accounts ...account.Account) error
	PutKey(ctx context.Context, keys ...account.Key) error
}

// Config is what the commands need. All fields are required.
type Config struct {
	// Logger returns the logger, once flags are parsed.
	Logger func() *slog.Logger
	// OpenStore connects to a store whose queries may take minutes.
	OpenStore func(ctx context.Context, where config.Stores) (Store, error)
}

type commands struct{ cfg Config }

// New returns the command `bench` with its subcommands.
func New(cfg Config) *cobra.Command {
	c := &commands{cfg}
	cmd := &cobra.Command{Use: "bench", Short: "Measure a running service, and compare measurements"}
	cmd.AddCommand(c.seed(), c.run(), c.peers(), c.compare(), c.report(), c.nullServer(), c.peerServer())
	return cmd
}
