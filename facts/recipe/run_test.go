package recipe_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/clickhouse/embedded"
	"companyscore/facts"
	"companyscore/facts/recipe"
	"companyscore/internal/table"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
)

const (
	// engineVariable makes the test binary the process of a recipe.
	engineVariable = "COMPANYSCORE_TEST_RECIPE"
	// parentVariable makes it run an import without end in a directory, of the file in fileVariable.
	parentVariable = "COMPANYSCORE_TEST_RECIPE_PARENT"
	fileVariable   = "COMPANYSCORE_TEST_RECIPE_FILE"
)

func TestMain(m *testing.M) {
	if os.Getenv(engineVariable) != "" {
		if err := embedded.ServeRecipe(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(parentVariable); dir != "" {
		r, err := recipe.Parse(endless)
		if err == nil {
			_, err = recipe.Import(context.Background(), newMemory(), recipe.Config{Recipe: r, Files: []string{os.Getenv(fileVariable)},
				Engine: engine, Dir: dir, Identifiers: known{}}, today)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
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

// known has the identifiers of companies as domain, kind, value.
type known [][3]string

func (k known) Identifiers(_ context.Context, each func(domain, kind, value string) error) error {
	for _, id := range k {
		if err := each(id[0], id[1], id[2]); err != nil {
			return err
		}
	}
	return nil
}

// statements is a recipe over two files of an archive.
const statements = `-- recipe: statements
-- file sub: sub.txt [required: adsh, cik, name]
-- file num: num.txt [required: adsh, value]
WITH companies AS
(
    SELECT domain, kind, value FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
)
SELECT
    coalesce(by_cik.domain, by_name.domain, '') AS domain,
    {day:String} AS as_of,
    num.value AS revenue_usd,
    sub.name AS subject,
    if(domain = '', 'no domain for CIK', '') AS unmatched
FROM file({sub:String}, 'TSVWithNames', 'adsh String, cik String, name String') AS sub
INNER JOIN
(
    SELECT adsh, sum(value) AS value, any(splitByChar('/', _path)[-2]) AS archive
    FROM file({num:String}, 'TSVWithNames', 'adsh String, value Float64')
    GROUP BY adsh
) AS num ON num.adsh = sub.adsh
LEFT JOIN (SELECT domain, value FROM companies WHERE kind = 'cik') AS by_cik ON by_cik.value = sub.cik
LEFT JOIN (SELECT domain, value FROM companies WHERE kind = 'name') AS by_name ON by_name.value = lower(replaceAll(sub.name, ' ', ''))
ORDER BY sub.adsh
SETTINGS join_use_nulls = 1
`

const (
	subText = "adsh\tcik\tname\na1\t320193\tApple Inc.\na2\t77\tQuill Works\na3\t99\tNobody\n"
	numText = "adsh\tvalue\na1\t5\na1\t7\na2\t1.5e6\na3\t1\n"
)

// member is a file of an archive.
type member struct{ name, text string }

// pack returns a zip archive.
func pack(t *testing.T, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		f, err := w.Create(m.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// write writes a file and returns its path.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func parse(t *testing.T, text string) *recipe.Recipe {
	t.Helper()
	r, err := recipe.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// memory is a store of layers by domain.
type memory struct {
	staged, stored map[string]scoring.CompanyFacts
	imported       table.FactsImport // the last one
}

func newMemory() *memory {
	return &memory{staged: map[string]scoring.CompanyFacts{}, stored: map[string]scoring.CompanyFacts{}}
}

func (m *memory) Stage(_ context.Context, _ string, layers []scoring.CompanyFacts) error {
	for _, c := range layers {
		m.staged[c.Domain] = c
	}
	return nil
}

func (m *memory) Commit(_ context.Context, i table.FactsImport) (table.FactsImport, error) {
	maps.Copy(m.stored, m.staged)
	i.CommittedAt, i.Changed = i.StartedAt, i.Matched
	m.imported = i
	return i, nil
}

func (m *memory) Discard(context.Context, table.FactsImport, error) error {
	clear(m.staged)
	return nil
}

func (m *memory) Recover(context.Context) error { return nil }

// today is the day of all imports.
var today = facts.Options{Day: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)}

// fails runs an import that must fail with an error that has a text, and leave nothing.
func fails(t *testing.T, cfg recipe.Config, says string) {
	t.Helper()
	store := newMemory()
	if _, err := recipe.Import(t.Context(), store, cfg, today); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want an error with %q", err, says)
	}
	if len(store.staged)+len(store.stored) > 0 {
		t.Errorf("stored: %v, %v", store.staged, store.stored)
	}
	if left, err := os.ReadDir(cfg.Dir); err != nil || len(left) > 0 {
		t.Errorf("left on disk: %v, %v", left, err)
	}
}

func config(t *testing.T, text string, files ...string) recipe.Config {
	t.Helper()
	return recipe.Config{Recipe: parse(t, text), Files: files, Engine: engine,
		Dir: t.TempDir(), Limit: wait.Max,
		Identifiers: known{{"apple.com", "cik", "320193"}, {"quillworks.com", "name", "The Quill-Works, Inc."}}}
}

func TestImportReadsAnArchive(t *testing.T) {
	t.Parallel()
	cfg := config(t, statements, write(t, "2026q3.zip", pack(t, member{"sub.txt", subText}, member{"dir/num.txt", numText},
		member{"readme.htm", "x"})))
	var unmatched strings.Builder
	cfg.Unmatched = &unmatched
	store := newMemory()
	report, err := recipe.Import(t.Context(), store, cfg, today)
	if err != nil {
		t.Fatal(err)
	}
	want := recipe.Report{Read: 3 + 4 + 2*2, Matched: 2, Changed: 2, Unmatched: map[string]uint64{"no domain for CIK": 1}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}
	if unmatched.String() != "subject,reason\nNobody,no domain for CIK\n" {
		t.Errorf("unmatched: %s", unmatched.String())
	}
	if len(store.stored) != 2 || *store.stored["apple.com"].RevenueUSD != 12 || *store.stored["quillworks.com"].RevenueUSD != 1.5e6 ||
		store.stored["apple.com"].Origin != "statements" {
		t.Errorf("stored: %+v", store.stored)
	}
	if i := store.imported; i.Recipe != "statements" || i.File != "2026q3.zip" || i.Rows != 3 || i.Matched != 2 ||
		i.Rejected["no domain for CIK"] != 1 || i.Origins[0] != "statements" {
		t.Errorf("the import: %+v", i)
	}
	if left, err := os.ReadDir(cfg.Dir); err != nil || len(left) > 0 {
		t.Errorf("left on disk: %v, %v", left, err)
	}
}

// list is a recipe over plain files.
const list = `-- recipe: list
-- file list: list*.csv [required: domain, rank]
SELECT domain, as_of, rank AS "signal:traffic_rank", revenue AS revenue_usd
FROM file({list:String}, 'CSVWithNames', 'domain String, rank Float64, as_of String, revenue Nullable(Float64)')
ORDER BY domain
`

func TestImportReadsSeveralFiles(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, "domain,rank\nb.com,2\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := config(t, list, write(t, "list (1).csv", []byte("\uFEFFdomain,rank\na.com,1\n")), write(t, "list-2.csv.gz", packed.Bytes()),
		write(t, "list.zip", pack(t, member{"list.csv", "rank,domain\n3,c.com\n"})))
	store := newMemory()
	if _, err := recipe.Import(t.Context(), store, cfg, facts.Options{Origin: "mine"}); err != nil {
		t.Fatal(err)
	}
	if domains := slices.Sorted(maps.Keys(store.stored)); strings.Join(domains, " ") != "a.com b.com c.com" ||
		store.stored["b.com"].Signals["traffic_rank"] != 2 || store.stored["b.com"].Origin != "mine" {
		t.Errorf("stored: %v", store.stored)
	}
}

// TestImportRefuses imports files with faults. Each is refused with its file, and nothing of it stays on disk.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	good := "domain,rank,as_of,revenue\na.com,1,2026-11-24,\n"
	for name, c := range map[string]struct{ file, text, says string }{
		"cut in half":        {"list.csv", good + "b.com", "list.csv: line 3: "},
		"cut in a quote":     {"list.csv", good + "\"b.co", "list.csv: line 3: "},
		"semicolons":         {"list.csv", strings.ReplaceAll(good, ",", ";"), "list.csv: line 1: no column \"domain\": the separator"},
		"semicolons in rows": {"list.csv", "domain,rank,as_of,revenue\na.com;1;2026-11-24;\n", "list.csv: line 2: "},
		"tabs in rows":       {"list.csv", good + "b.com\t1\t\t\n", "list.csv: line 3: "},
		"a column renamed":   {"list.csv", strings.Replace(good, "rank", "Rank", 1), `list.csv: line 1: no column "rank" among domain, Rank`},
		"a column twice":     {"list.csv", "domain,rank,rank\na.com,1,2\n", `list.csv: line 1: column "rank" stands there twice`},
		"an empty file":      {"list.csv", "", "list.csv: line 1: the file is empty"},
		"no number":          {"list.csv", good + "b.com,x,,\n", "list.csv: line 3: "},
		"another file":       {"other.csv", good, "other.csv is no file of recipe list, which reads list*.csv"},
		"no gzip":            {"list.csv.gz", good, "list.csv.gz: line 1: "},
		"other compression":  {"list.csv", "\x28\xb5\x2f\xfd" + good, "zstd"},
		"a day to come":      {"list.csv", "domain,rank,as_of\na.com,1,2026-11-25\n", "as_of 2026-11-25 is in the future"},
		"negative revenue":   {"list.csv", good + "b.com,1,,-5\n", "line 3 of the result: b.com, revenue_usd: \"-5\""},
		"1e999":              {"list.csv", good + "b.com,1,,1e999\n", "line 3 of the result: b.com, revenue_usd: \"inf\": not a number"},
		"no domain":          {"list.csv", good + "no domain,1,,\n", "line 3 of the result: no domain, domain"},
		"a domain twice":     {"list.csv", good + "www.a.com,1,,\n", "a.com stands in line 2 already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fails(t, config(t, list, write(t, c.file, []byte(c.text))), c.says)
		})
	}
}

// TestImportReportsTheLine has a fault far into a file, which the engine reads in parts.
func TestImportReportsTheLine(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("some.long.domain.com,1,2026-11-24,1\n", 1_000_000)
	const at = 777_777 * 36
	text = "domain,rank,as_of,revenue\n" + text[:at] + "x.com,y,,\n" + text[at:]
	fails(t, config(t, list, write(t, "list.csv", []byte(text))), "list.csv: line 777779: ")
}

func TestImportRefusesRecipes(t *testing.T) {
	t.Parallel()
	head := "-- recipe: r\n-- file list: list*.csv\n"
	from := " FROM file({list:String}, 'CSV', 'a String')"
	for statement, says := range map[string]string{
		"SELECT 'a.com' AS domain, 1 AS revenu" + from:                                                                    `a column "revenu"`,
		"SELECT 1 AS employees" + from:                                                                                    `no column "domain"`,
		"SELECT 'a.com' AS domain, 1 AS employees, 2 AS employees" + from:                                                 "employees",
		"SELECT now() AS domain" + from:                                                                                   "now",
		"SELECT a AS domain FROM file({lists:String}, 'CSV') -- {list:String}":                                            "lists:String}",
		"SELECT a AS domain, groupArray(number) AS city" + from + " AS l CROSS JOIN numbers(10000000000) AS n GROUP BY a": "memory",
	} {
		fails(t, config(t, head+statement, write(t, "list.csv", []byte("a.com\n"))), says)
	}
	cfg := config(t, head+"SELECT toString(sum(cityHash64(number))) AS domain FROM numbers(1000000000000) -- {list:String}",
		write(t, "list.csv", []byte("a.com\n")))
	cfg.Limit = time.Second
	if _, err := recipe.Import(t.Context(), newMemory(), cfg, today); err == nil || !strings.Contains(err.Error(), "within 1s") &&
		!strings.Contains(err.Error(), "Timeout exceeded") {
		t.Errorf("a recipe that does not end: %v", err)
	}
}

func TestImportRefusesArchives(t *testing.T) {
	t.Parallel()
	sub, num := member{"sub.txt", subText}, member{"num.txt", numText}
	whole := pack(t, sub, num)
	header := func(h zip.FileHeader, text string) []byte {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		f, err := w.CreateRaw(&h)
		if err == nil {
			_, err = io.WriteString(f, text)
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	of := func(name string, mode fs.FileMode, size int) []byte {
		h := zip.FileHeader{Name: name, CRC32: crc32.ChecksumIEEE([]byte(subText)), CompressedSize64: uint64(len(subText)),
			UncompressedSize64: uint64(size)}
		h.SetMode(mode)
		return header(h, subText)
	}
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"cut in half":           {whole[:len(whole)/2], "damaged or cut off"},
		"a bit is wrong":        {bytes.Replace(whole, []byte("PK\x01\x02"), []byte("PK\x01\x03"), 1), "damaged"},
		"smaller than said":     {of("sub.txt", 0o600, len(subText)+1), "another size"},
		"larger than said":      {of("sub.txt", 0o600, len(subText)-1), "another size"},
		"much larger than said": {of("sub.txt", 0o600, 1), "another size"},
		"said to be huge":       {of("sub.txt", 0o600, 1<<50), "may be unpacked"},
		"a link":                {of("sub.txt", fs.ModeSymlink|0o777, len(subText)), "no regular file"},
		"a device":              {of("sub.txt", fs.ModeDevice|0o777, len(subText)), "no regular file"},
		"outside":               {of("../sub.txt", 0o600, len(subText)), "leads out"},
		"absolute":              {of("/tmp/sub.txt", 0o600, len(subText)), "leads out"},
		"backslashes":           {of(`..\sub.txt`, 0o600, len(subText)), "leads out"},
		"control characters":    {of("sub\n.txt", 0o600, len(subText)), "control characters"},
		"an archive in it":      {pack(t, sub, num, member{"more.zip", "x"}), "archive in an archive"},
		"an archive by content": {pack(t, member{"sub.txt", string(whole)}, num), "archive in an archive"},
		"a file missing":        {pack(t, sub), "no file num.txt is given"},
		"no file":               {pack(t, member{"x.txt", ""}), "has no file of recipe statements"},
		"a file twice":          {pack(t, sub, num, member{"b/sub.txt", subText}), "two members sub.txt"},
		"a header changed":      {pack(t, sub, member{"num.txt", "adsh\tamount\n"}), `2026q3.zip/num.txt: line 1: no column "value"`},
		"a row cut off":         {pack(t, sub, member{"num.txt", numText + "a4"}), `2026q3.zip/num.txt: line 6: `},
		"too dense":             {pack(t, sub, member{"num.txt", strings.Repeat("0", 100<<20)}), "200 times as large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fails(t, config(t, statements, write(t, "2026q3.zip", c.data)), c.says)
		})
	}
	twice := write(t, "2026q3.zip", whole)
	fails(t, config(t, statements, twice, twice), "given twice")
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// TestExampleOfTheDocumentation runs the recipe of docs/recipes.md over its file.
func TestExampleOfTheDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string][]string{}
	for _, block := range fenced.FindAllStringSubmatch(string(page), -1) {
		blocks[block[1]] = append(blocks[block[1]], block[2])
	}
	file, printed := blocks["text"][0], blocks["text"][1]
	cfg := config(t, blocks["sql"][0], write(t, "sellers-2026.csv", []byte(file)))
	cfg.Identifiers = known{{"quillworks.com", "name", "Quill Works"}, {"brindle.com", "name", "Brindle"}}
	store := newMemory()
	report, err := recipe.Import(t.Context(), store, cfg, today)
	if err != nil {
		t.Fatal(err)
	}
	if got := report.String(); got != printed {
		t.Errorf("the page says\n%s, the command prints\n%s", printed, got)
	}
	if *store.stored["quillworks.com"].Employees != 120 || store.stored["quillworks.com"].Signals["open_roles"] != 4 ||
		len(store.stored["brindle.com"].Signals) != 0 {
		t.Errorf("stored: %+v", store.stored)
	}
}

// endless is a recipe that does not end.
const endless = "-- recipe: endless\n-- file list: list.csv\n" +
	"SELECT toString(sum(cityHash64(number))) AS domain FROM numbers(1000000000000) -- {list:String}"

// TestKilledImportLeavesNothing kills a process in the middle of an import. Its engine ends with it, and the next import removes its files.
func TestKilledImportLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list := write(t, "list.csv", []byte("a.com\n"))
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), parentVariable+"="+dir, fileVariable+"="+list)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	wait.Until(t, "the statement runs", func() bool {
		results, _ := filepath.Glob(filepath.Join(dir, "*", "result.csv"))
		locks, _ := filepath.Glob(filepath.Join(dir, "*", "engine", "server.lock"))
		if len(results) == 0 || len(locks) == 0 {
			return false
		}
		text, _ := os.ReadFile(locks[0])
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	wait.Until(t, "the engine has ended", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(text), ") Z ")
	})
	cfg := config(t, endless, list)
	cfg.Dir, cfg.Limit = dir, time.Second
	fails(t, cfg, "")
}
