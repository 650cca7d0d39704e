// Package command has the subcommands of `companyscore bench`.
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

// Store is the store of `bench seed`.
type Store interface {
	seed.Store
	io.Closer
	// Put writes accounts. PutKey writes keys.
	Put(ctx context.Context, accounts ...account.Account) error
	PutKey(ctx context.Context, keys ...account.Key) error
}

// Config has the dependencies of the commands. All fields are required.
type Config struct {
	// Logger returns the logger. It is called after flags are parsed.
	Logger func() *slog.Logger
	// OpenStore connects to a store whose queries may take minutes.
	OpenStore func(ctx context.Context, where config.Stores) (Store, error)
}

type commands struct{ cfg Config }

// New returns the command `bench` with its subcommands.
func New(cfg Config) *cobra.Command {
	c := &commands{cfg}
	cmd := &cobra.Command{Use: "bench", Short: "Measure a running service and compare results"}
	cmd.AddCommand(c.seed(), c.run(), c.peers(), c.compare(), c.report(), c.nullServer(), c.peerServer())
	return cmd
}
