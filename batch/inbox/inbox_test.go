package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/batch/inbox"
	"companyscore/clickhouse"
	"companyscore/clickhouse/embedded"
	"companyscore/facts"
	"companyscore/facts/recipe"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
)

// engineVariable makes the test binary the process of a recipe.
const engineVariable = "COMPANYSCORE_TEST_RECIPE"

func TestMain(m *testing.M) {
	if os.Getenv(engineVariable) != "" {
		if err := embedded.ServeRecipe(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	stores.Main(m)
}

// engine is the real one.
func engine(ctx context.Context, job recipe.Job) (uint64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), engineVariable+"=1")
	return embedded.RunRecipe(ctx, cmd, embedded.Recipe(job))
}

// site is an inbox with real stores.
type site struct {
	*testing.T
	dir   string
	db    *clickhouse.DB
	facts *clickhouse.Facts
	redis goredis.UniversalClient
	queue *queue.Queue
	inbox *inbox.Inbox
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, dir: t.TempDir()}
	var err error
	if s.db, err = clickhouse.Open(t.Context(), clickhouse.Config{URL: stores.ClickHouse(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.db.Close() })
	if _, err := s.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.redis, err = redis.Open(t.Context(), stores.Redis(t).URL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.redis.Close() })
	if s.queue, err = queue.New(s.redis, queue.Config{}); err != nil {
		t.Fatal(err)
	}
	s.facts = clickhouse.NewFacts(s.db)
	s.inbox = s.open(s.facts)
	return s
}

// open returns the inbox as another process with a store has it.
func (s *site) open(store inbox.Store) *inbox.Inbox {
	return inbox.New(inbox.Config{Dir: s.dir, Store: store, Queue: s.queue, Redis: s.redis, Engine: engine,
		Logger: slog.New(slog.DiscardHandler)})
}

// put writes a file of the inbox and gives it the time of a step, so that no test depends on the clock.
func (s *site) put(name, text string, step int) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	at := time.Date(2026, 1, 1, 0, 0, step, 0, time.UTC)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600),
		os.Chtimes(path, at, at)); err != nil {
		s.Fatal(err)
	}
}

// message returns the message beside a file, "" for none.
func (s *site) message(name string) string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name+".error"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return string(text)
}

// run runs the job and ends all runs that it started. It returns their domains.
func (s *site) run(imports, failed uint64) string {
	s.Helper()
	done, err := s.inbox.Run(s.Context(), true)
	if (err != nil) != (failed > 0) || done.Imports != imports || done.Failed != failed {
		s.Fatalf("the job did %+v, %v; want %d imports, %d files that failed", done, err, imports, failed)
	}
	return s.started()
}

// started ends all runs and returns their domains.
func (s *site) started() string {
	s.Helper()
	runs, err := s.queue.List(s.Context(), scoring.RunQueued, 1000)
	if err != nil {
		s.Fatal(err)
	}
	var domains []string
	for _, r := range runs {
		if r.Lane != scoring.LaneBulk {
			s.Errorf("the run of %s is in the lane %s", r.Domain, r.Lane)
		}
		if err := s.queue.Abort(s.Context(), r.ID); err != nil {
			s.Fatal(err)
		}
		domains = append(domains, r.Domain)
	}
	slices.Sort(domains)
	return strings.Join(domains, " ")
}

func TestRunsStartForFactsThatCount(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	step := func(name, text, want string) {
		t.Helper()
		s.put(name, text, len(text))
		if got := s.run(1, 0); got != want {
			t.Errorf("after %s runs of %q were started, want %q", name, got, want)
		}
		if got := s.run(0, 0); got != "" {
			t.Errorf("without a change of %s runs of %q were started", name, got)
		}
	}
	const columns = "domain,company_name,employees,as_of\n"
	step("import/crm.csv", columns+"a.com,A,5,2026-01-05\nb.com,B,6,2026-01-05\nc.com,C,7,2026-01-05\n", "a.com b.com c.com")
	// Of an older origin only what was unknown counts, here the headcount of d.com.
	step("import/old.csv", columns+"a.com,AA,50,2025-01-05\nd.com,,8,2025-01-05\n", "d.com")
	step("import/old.csv", columns+"a.com,AAA,55,2025-01-06\nd.com,,8,2025-01-07\n", "") // a layer that loses, and a new day
	// The newest import of crm drops the headcount of b.com, keeps a.com and changes c.com.
	step("import/crm.csv", columns+"a.com,A,5,2026-02-05\nb.com,B,,2026-02-05\nc.com,C,9,2026-02-05\n", "b.com c.com")
	step("import/crm.csv", columns+"a.com,A,5,2026-02-05\nb.com,Bee,,2026-02-05\nc.com,C,>=9,2026-02-05\n", "b.com c.com")
	step("import/gone.csv", "domain,status\nc.com,dead\n", "c.com")
	// Content that came under another name is known, and one that a name had before is new.
	s.put("import/copy.csv", "domain,status\nc.com,dead\n", 0)
	if got := s.run(0, 0); got != "" {
		t.Errorf("a copy started runs of %q", got)
	}
	step("import/gone.csv", "domain,status\nc.com,\n", "c.com")
	step("import/gone.csv", "domain,status\nc.com,dead\n", "c.com")
}

func TestFilesThatCount(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const rows = "domain,employees\na.com,5\n"
	look := func(want uint64) {
		t.Helper()
		if done, err := s.inbox.Run(t.Context(), false); err != nil || done.Imports != want {
			t.Errorf("%+v, %v; want %d imports", done, err, want)
		}
	}
	s.put("import/crm.csv", "domain,emp", 1)
	look(0)
	s.put("import/crm.csv", rows, 2)
	look(0)
	s.put("import/.hidden.csv", rows, 2)
	s.put("import/next.csv.part", rows, 2)
	s.put("import/below/next.csv", rows, 2)
	look(1)
	look(0)
	if got := s.started(); got != "a.com" {
		t.Errorf("runs of %q", got)
	}
	// A recipe waits for all of its files.
	s.put("tranco/2026-01-01.csv", "1,a.com\n", 3)
	look(0)
	s.put("tranco/2026-01-02.csv", "2,a.com\n", 3)
	look(0)
	look(1)
	if imports, err := s.facts.Imports(t.Context(), 1); err != nil || imports[0].File != "2026-01-01.csv 2026-01-02.csv" ||
		imports[0].Recipe != "tranco" || imports[0].Matched != 1 {
		t.Errorf("imports %+v, %v", imports, err)
	}
}

func TestRecipeReadsAllFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put("import/crm.csv", "domain,employees\na.com,5\nb.com,5\n", 1)
	day := func(ago int) string { return time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly) }
	older, newer, renamed := "tranco/"+day(32)+".csv", "tranco/"+day(1)+".csv", "tranco/list-"+day(32)+".csv"
	s.put(older, "10,a.com\n20,b.com\n", 1)
	if got := s.run(2, 0); got != "a.com b.com" {
		t.Errorf("runs of %q", got)
	}
	s.put(newer, "10,a.com\n30,b.com\n", 1) // a.com has no change of its rank, but now that is known
	if got := s.run(1, 0); got != "a.com b.com" {
		t.Errorf("after a second list, runs of %q", got)
	}
	if err := os.Rename(filepath.Join(s.dir, older), filepath.Join(s.dir, renamed)); err != nil {
		t.Fatal(err)
	}
	if got := s.run(0, 0); got != "" {
		t.Errorf("after a new name, runs of %q", got)
	}
	if err := os.Remove(filepath.Join(s.dir, renamed)); err != nil {
		t.Fatal(err)
	}
	if got := s.run(0, 0); got != "" {
		t.Errorf("after a removal, runs of %q", got)
	}
}

func TestBadFilesBesideGoodOnes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put("import/a-bad.csv", "domain,staff\na.com,5\n", 1)
	s.put("import/b-rows.csv", "domain,employees\nb.com,6\nc.com,many\n", 1)
	s.put("import/c-good.csv", "domain,employees\na.com,7\n", 1)
	s.put("stray.csv", "x", 1)
	s.put("tranco/2026-05-01.csv", "10,a.com\n", 1)
	s.put("tranco/broken.zip", "PK\x03\x04 cut off", 1)
	s.put("tranco/notes.txt", "of another kind", 1)
	if got := s.run(3, 5); got != "a.com b.com" {
		t.Errorf("runs of %q", got)
	}
	for name, want := range map[string]string{
		"import/a-bad.csv": "a-bad.csv: import a-bad.csv: unknown column", "import/b-rows.csv": "imported are 1 of 2 rows\nline 3",
		"import/c-good.csv": "", "stray.csv": "put files into", "tranco/2026-05-01.csv": "",
		"tranco/broken.zip": "broken.zip: the archive is damaged",
		"tranco/notes.txt":  "notes.txt is no file of recipe tranco",
	} {
		if got := s.message(name); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("the message of %s is %q, want %q", name, got, want)
		}
	}
	if got := s.run(0, 0); got != "" {
		t.Errorf("again, runs of %q", got)
	}
	imports, err := s.facts.Imports(t.Context(), 100)
	failed := 0
	for _, i := range imports {
		if i.State == table.ImportFailed && i.Error != "" && i.File != "" {
			failed++
		}
	}
	if err != nil || failed != 3 || len(imports) != 6 {
		t.Errorf("%d of imports %+v failed, %v", failed, imports, err)
	}
	// A file is tried again if it or its message is another one.
	s.put("import/a-bad.csv", "domain,employees\na.com,9\n", 2)
	if got := s.run(1, 0); got != "a.com" || s.message("import/a-bad.csv") != "" {
		t.Errorf("the correct file started runs of %q, its message is %q", got, s.message("import/a-bad.csv"))
	}
	if err := os.Remove(filepath.Join(s.dir, "tranco/notes.txt.error")); err != nil {
		t.Fatal(err)
	}
	s.run(0, 1)
	s.put("tranco/notes.txt.error", "", 9)
	s.run(0, 1)
}

// interrupted is a store whose process ends at a step of an import.
type interrupted struct {
	*clickhouse.Facts
	stage, commit bool
}

var errKilled = errors.New("killed")

func (s interrupted) Stage(ctx context.Context, id string, layers []scoring.CompanyFacts) error {
	if s.stage {
		return errKilled
	}
	return s.Facts.Stage(ctx, id, layers)
}

func (s interrupted) Commit(ctx context.Context, i table.FactsImport) (table.FactsImport, error) {
	if s.commit {
		return i, errKilled
	}
	i, err := s.Facts.Commit(ctx, i)
	return i, errors.Join(err, errKilled)
}

func (s interrupted) Discard(context.Context, table.FactsImport, error) error { return nil }

func TestKilledJobIsCompleted(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]interrupted{
		"while staging": {stage: true}, "before the commit": {commit: true}, "before the runs": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.put("import/crm.csv", "domain,employees\na.com,5\nb.com,6\n", 1)
			store.Facts = s.facts
			if _, err := s.open(store).Run(t.Context(), true); !errors.Is(err, errKilled) {
				t.Fatalf("the job ended with %v", err)
			}
			if got := s.started() + s.message("import/crm.csv"); got != "" {
				t.Errorf("before the start: %q", got)
			}
			imports := uint64(1)
			if !store.stage && !store.commit {
				imports = 0 // it was complete
			}
			if got := s.run(imports, 0); got != "a.com b.com" {
				t.Errorf("runs of %q", got)
			}
			if got := s.run(0, 0); got != "" {
				t.Errorf("again, runs of %q", got)
			}
			if keys, err := s.redis.Keys(t.Context(), "*inbox*").Result(); err != nil || len(keys) > 0 {
				t.Errorf("%v are left, %v", keys, err)
			}
		})
	}
}

// Many layers are compared page by page.
func TestLargeImport(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const companies = 45_000
	var text, changed strings.Builder
	text.WriteString("domain,employees\n")
	changed.WriteString("domain,employees\n")
	for i := range companies {
		fmt.Fprintf(&text, "c%06d.com,%d\n", i, i)
		n := i
		if i%1000 == 7 {
			n++
		}
		fmt.Fprintf(&changed, "c%06d.com,%d\n", i, n)
	}
	s.put("import/crm.csv", text.String(), 1)
	done, err := s.inbox.Run(t.Context(), true)
	if err != nil || done.Started != companies || done.Waiting != 0 {
		t.Errorf("%+v, %v; want %d runs started", done, err, companies)
	}
	if err := s.redis.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.put("import/crm.csv", changed.String(), 2)
	done, err = s.inbox.Run(t.Context(), true)
	if err != nil || done.Started != companies/1000 {
		t.Errorf("%+v, %v; want %d runs started", done, err, companies/1000)
	}
}

var _ facts.Store = interrupted{}
