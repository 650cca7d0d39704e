package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"companyscore/clickhouse"
	"companyscore/clickhouse/embedded"
	"companyscore/facts"
	"companyscore/facts/recipe"
	"companyscore/internal/cli"
	"companyscore/internal/process"
)

// recipeImport has the flags of `facts import` for recipes.
type recipeImport struct {
	name, unmatched, day string
	limit                time.Duration
}

func (i *recipeImport) flags(flags *pflag.FlagSet) {
	flags.StringVar(&i.name, "recipe", "",
		"read files of a publisher with this recipe: its name, as facts recipes lists it, or FILE.sql")
	flags.StringVar(&i.unmatched, "unmatched", "", "write the rows that a recipe does not import to this CSV file, with the reason")
	flags.StringVar(&i.day, "as-of", "", "day of the import for a recipe, YYYY-MM-DD; default: today, UTC")
	flags.DurationVar(&i.limit, "time-limit", 10*time.Minute, "time after which a recipe is ended")
}

// run imports files with a recipe.
func (i *recipeImport) run(cmd *cobra.Command, with withFacts, files []string, opt facts.Options) (err error) {
	if i.limit < time.Second {
		return cli.Usage(fmt.Errorf("--time-limit %s: must be at least 1s", i.limit))
	}
	if i.day != "" {
		if opt.Day, err = time.Parse(time.DateOnly, i.day); err != nil {
			return cli.Usage(fmt.Errorf("--as-of %s: must be a day such as 2026-09-30", i.day))
		}
	}
	cfg := recipe.Config{Files: files, Engine: recipeEngine, Limit: i.limit}
	if cfg.Recipe, err = recipe.Load(i.name); err != nil {
		return cli.Usage(err)
	}
	if i.unmatched != "" {
		out, err := os.Create(i.unmatched)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		cfg.Unmatched = out
	}
	return with(cmd, func(ctx context.Context, store *clickhouse.Facts) error {
		cfg.Identifiers = store
		defer cli.Working(cmd.ErrOrStderr(), "reading "+strings.Join(files, ", "))()
		report, err := recipe.Import(ctx, store, cfg, opt)
		if refused, ok := errors.AsType[*recipe.Refused](err); ok {
			for _, fault := range refused.Faults {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", i.name, fault)
			}
			if refused.Omitted > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "and %d more\n", refused.Omitted)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "nothing is imported")
			return cli.ErrReported
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), report)
		return err
	})
}

// recipeEngine runs the statement of a recipe in a process of its own.
func recipeEngine(ctx context.Context, job recipe.Job) (uint64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	return embedded.RunRecipe(ctx, exec.Command(self, recipeEngineName), embedded.Recipe(job))
}

const (
	recipeEngineName = "recipe-engine"
	// recipeNice is the nice value of the process. A server on the same machine has priority.
	recipeNice process.Nice = 10
)

// recipeEngineCommand is the process of recipeEngine.
func recipeEngineCommand() *cobra.Command {
	return &cobra.Command{
		Use:    recipeEngineName,
		Short:  "Run the statement of a recipe, for `facts import`",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := recipeNice.Apply(); err != nil {
				return err
			}
			return embedded.ServeRecipe(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// recipeColumns are the columns of the list of recipes.
var recipeColumns = []cli.Column[*recipe.Recipe]{
	{Name: "recipe", Value: func(r *recipe.Recipe) any { return r.Name }},
	{Name: "publisher", Value: func(r *recipe.Recipe) any { return r.Publisher }},
	{Name: "licence", Value: func(r *recipe.Recipe) any { return r.Licence }},
	{Name: "files", Value: func(r *recipe.Recipe) any { return r.Patterns() }},
	{Name: "format", Value: func(r *recipe.Recipe) any { return r.Format }},
	{Name: "signals", Value: func(r *recipe.Recipe) any { return strings.Join(r.Signals, ", ") }},
	{Name: "documentation", Value: func(r *recipe.Recipe) any { return r.Documentation }},
}

func factsRecipes() *cobra.Command {
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "recipes",
		Short: "List the recipes, which read files of publishers",
		Long: `List the recipes of this program, each with the publisher of its files, their licence, their names and
format, and the signals that they give. docs/recipes.md says how to write one.`,
		Example: "  companyscore facts recipes --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.PrintList(cmd.OutOrStdout(), format, recipe.Shipped(), recipeColumns)
		},
	}
	format.Flag(cmd)
	return cmd
}
