package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"companyscore/internal/account"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/seed"
	"companyscore/internal/stores"
)

func (c *benchCommands) seed() *cobra.Command {
	var where config.Stores
	var spec seed.Spec
	var keys issuedKeys
	var signals, until, tier string
	var beside, quiet, expect bool
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "Fill a store with made-up companies, and issue keys to ask for them",
		Long: `Fill ClickHouse with companies that do not exist: a universe that is the same for the
same --seed, --records, --signals and --until wherever it is made. Their histories are
realistic, and every record is what scoring its signals gives. An interrupted call is
repeated to go on where it stopped; repeated with more --domains it adds to what is there.
With --keys it opens accounts and issues a live key of each, for a load generator.`,
		Example: `  companyscore bench seed --domains 1000000 --records 5 --seed 1
  companyscore bench seed --keys 50 --tier enterprise --keys-file keys.txt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			spec.Signals = seed.Signals(signals)
			if until != "" {
				if spec.Until, err = time.Parse(time.RFC3339Nano, until); err != nil {
					return cli.Usage(fmt.Errorf("--until %q: use a time such as 2026-05-01T12:00:00Z", until))
				}
			}
			if spec.Domains == 0 && keys.count == 0 {
				return cli.Usage(errors.New("nothing to generate: use --domains, --keys or both"))
			}
			if spec.Domains != 0 {
				check := spec
				if check.Until.IsZero() {
					check.Until = time.UnixMilli(0)
				}
				if err := check.Validate(); err != nil {
					return cli.Usage(err)
				}
			}
			if expect {
				if spec.Domains == 0 || spec.Until.IsZero() {
					return cli.Usage(errors.New("--expect needs --domains and --until"))
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(seed.Expect(spec.Universe, spec.Until))
			}
			if keys.plan, err = account.ParsePlan(tier); err != nil {
				return cli.Usage(err)
			}
			if keys.count < 0 || keys.count > benchKeysMax {
				return cli.Usage(fmt.Errorf("%d keys: must be 0 to %d", keys.count, benchKeysMax))
			}
			store, err := stores.OpenSeed(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer store.Close()
			if spec.Domains != 0 {
				if err := seedUniverse(cmd, store, spec, beside, quiet); err != nil {
					return err
				}
			}
			step := []string{"bench", "run"}
			if spec.Domains != 0 {
				step = append(step, "--domains", strconv.Itoa(spec.Domains), "--seed", strconv.FormatUint(spec.Seed, 10))
			}
			if keys.count != 0 {
				if err := keys.issue(cmd.Context(), store); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%d live keys of tier %s are in %s\n", keys.count, keys.plan, keys.path)
				step = append(step, "--keys-file", keys.path)
			}
			if !quiet && spec.Domains != 0 {
				next(cmd, step...)
			}
			return nil
		},
	}
	where.Flags(cmd.Flags())
	flags := cmd.Flags()
	flags.IntVar(&spec.Domains, "domains", 0, "number of companies")
	flags.IntVar(&spec.Records, "records", 5, "number of records per company")
	flags.Uint64Var(&spec.Seed, "seed", 1, "seed of the universe")
	flags.StringVar(&signals, "signals", string(seed.SignalsNewest), "records with their 67 signals: newest (of each company), all or none")
	flags.StringVar(&until, "until", "", "time of the youngest records (default: the time of the first call)")
	flags.BoolVar(&expect, "expect", false, "write nothing, print the expected statistics at --until as JSON")
	flags.BoolVar(&beside, "append", false, "write even if the store has other records")
	flags.IntVar(&keys.count, "keys", 0, "number of accounts with a live key to create")
	flags.StringVar(&tier, "tier", string(account.Enterprise), "tier of these accounts")
	flags.StringVar(&keys.path, "keys-file", "bench-keys.txt", "file for the keys, one per line, readable by its owner only")
	flags.BoolVar(&quiet, "quiet", false, "show no progress and no next step")
	return cmd
}

// seedUniverse generates a universe and shows its progress.
func seedUniverse(cmd *cobra.Command, store stores.Seed, spec seed.Spec, beside, quiet bool) error {
	began := time.Now()
	show := newSeedProgress(cmd.ErrOrStderr(), quiet)
	before, err := seed.Write(cmd.Context(), store, spec, beside, show.update)
	show.end()
	if errors.Is(err, seed.ErrNotEmpty) {
		return fmt.Errorf("%w: use --append to add generated companies, or an empty store", err)
	}
	if err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	added := max(spec.Domains-before.Domains, 0)
	fmt.Fprintf(cmd.OutOrStdout(), "%d companies were there, %d were added with %d records in %.1f s (%.0f records/s)\n",
		before.Domains, added, added*spec.Records, took, float64(added*spec.Records)/took)
	return nil
}

// seedProgress shows the progress of a generation: on a terminal in one line, else with a
// line every ten seconds.
type seedProgress struct {
	w        io.Writer
	line     bool
	began    time.Time
	from     int64 // records at the first report
	shown    time.Time
	interval time.Duration
}

func newSeedProgress(w io.Writer, quiet bool) *seedProgress {
	p := &seedProgress{w: cli.Control(w), began: time.Now(), from: -1, interval: 10 * time.Second}
	if cli.IsTerminal(w) {
		p.line, p.interval = true, 0
	}
	if quiet {
		p.w = io.Discard
	}
	return p
}

func (p *seedProgress) update(done, total int64) {
	now := time.Now()
	if p.from < 0 {
		p.from = done
	}
	if done < total && now.Sub(p.shown) < p.interval {
		return
	}
	p.shown = now
	rate, left := float64(done-p.from)/now.Sub(p.began).Seconds(), "unknown"
	if rate > 0 {
		left = (time.Duration(float64(total-done)/rate) * time.Second).String()
	}
	begin, end := "", "\n"
	if p.line {
		begin, end = "\r\x1b[K", ""
	}
	fmt.Fprintf(p.w, "%sseeding: %d of %d records, %.0f records/s, %s left%s", begin, done, total, rate, left, end)
}

// end ends the line on a terminal.
func (p *seedProgress) end() {
	if p.line {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// benchKeysMax bounds the number of keys per call.
const benchKeysMax = 100_000

// issuedKeys are accounts with one live key each.
type issuedKeys struct {
	count int
	plan  account.Plan
	path  string
}

// issue creates the accounts and keys and writes the file, one key per line. It creates the file
// first, so that no key is created without being stored.
func (k issuedKeys) issue(ctx context.Context, accounts stores.Seed) error {
	f, err := os.OpenFile(k.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s already exists: use another --keys-file, or remove it", k.path)
	}
	if err != nil {
		return err
	}
	now := time.Now()
	var text strings.Builder
	opened, issued := make([]account.Account, 0, k.count), make([]account.Key, 0, k.count)
	for n := range k.count {
		acct := account.Account{ID: uuid.Must(uuid.NewV7()).String(), Name: fmt.Sprintf("bench %d", n+1), Plan: k.plan, CreatedAt: now}
		key, raw := account.NewKey(acct.ID, "bench", account.Live, now)
		opened, issued = append(opened, acct), append(issued, key)
		text.WriteString(raw + "\n")
	}
	if err = accounts.Put(ctx, opened...); err == nil {
		err = accounts.PutKey(ctx, issued...)
	}
	if err == nil {
		_, err = f.WriteString(text.String())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(k.path))
	}
	return nil
}
