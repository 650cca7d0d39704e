package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/config"

	"companyscore/internal/stores"
)

func (c *program) migrate() *cobra.Command {
	var where config.Stores
	cmd := &cobra.Command{
		Use:     "migrate",
		Short:   "Apply pending migrations to ClickHouse",
		Example: "  CLICKHOUSE_URL=http://companyscore:secret@127.0.0.1:8123/companyscore companyscore migrate",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := stores.OpenClickHouse(cmd.Context(), where, 0)
			if err != nil {
				return err
			}
			defer db.Close()
			defer cli.Working(cmd.ErrOrStderr(), "migrating")()
			applied, err := db.Migrate(cmd.Context())
			for _, name := range applied {
				fmt.Fprintln(cmd.OutOrStdout(), "applied", name)
			}
			if err == nil && len(applied) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "no pending migrations")
			}
			return err
		},
	}
	where.Flags(cmd.Flags())
	return cmd
}
