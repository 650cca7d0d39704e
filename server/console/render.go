package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"companyscore/internal/account"
	"companyscore/internal/release"
	"companyscore/scoring"
	"companyscore/server/api"
)

var (
	//go:embed templates static
	files embed.FS

	// parsed has the templates by page and the static files by name. The first call parses them, so that
	// commands that do not serve start without it.
	parsed = sync.OnceValues(parse)
)

const staticPath = Path + "/static/"

// asset is a file of static, under a name with the hash of its content.
type asset struct {
	name, kind string
	content    []byte
}

// parse reads the templates and the static files. Each page has its own set: the layout, the shared
// parts, and the file with the name of the page.
func parse() (map[string]*template.Template, map[string]asset) {
	byName := make(map[string]asset)
	must := func(err error) {
		if err != nil {
			panic("console: " + err.Error()) // cannot happen, the files are embedded
		}
	}
	entries, err := fs.ReadDir(files, "static")
	must(err)
	for _, entry := range entries {
		content, err := files.ReadFile("static/" + entry.Name())
		must(err)
		sum := sha256.Sum256(content)
		ext := path.Ext(entry.Name())
		kind := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}[ext]
		byName[entry.Name()] = asset{strings.TrimSuffix(entry.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext, kind, content}
	}
	functions := template.FuncMap{
		"static":   func(name string) string { return staticPath + byName[name].name },
		"path":     func(parts ...any) string { return Path + fmt.Sprint(parts...) },
		"count":    count,
		"points":   func(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) },
		"points2":  func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) },
		"share100": func(x float64) float64 { return 100 * x },
		"signed":   func(x float64) string { return strings.Replace(fmt.Sprintf("%+.1f", x), "-", "−", 1) },
		"percent":  func(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) + " %" },
		"whole":    func(x float64) string { return strconv.FormatFloat(math.Round(x), 'f', 0, 64) },
		"share":    func(part, all int64) float64 { return 100 * float64(part) / float64(max(all, 1)) },
		"value":    value,
		"bytes":    size,
		"took":     took,
		"span":     span,
		"plural": func(n int, noun string, plural ...string) string {
			switch {
			case n == 1:
			case len(plural) > 0:
				noun = plural[0]
			default:
				noun += "s"
			}
			return count(n) + " " + noun
		},
		"rating":   scoring.RatingOf,
		"commands": commands,
		"words":    words,
		"bucket":   api.BucketName,
		"grade":    gradeClass,
		"form":     func(v *visit, path string) form { return form{Path + path, v.formToken(path)} },
		"dict": func(pairs ...any) map[string]any {
			all := make(map[string]any, len(pairs)/2)
			for i := 0; i+1 < len(pairs); i += 2 {
				all[pairs[i].(string)] = pairs[i+1]
			}
			return all
		},
		"version": release.String,
	}
	pages := make(map[string]*template.Template)
	shared, err := template.New("layout.html").Funcs(functions).ParseFS(files, "templates/layout.html", "templates/parts.html")
	must(err)
	entries, err = fs.ReadDir(files, "templates")
	must(err)
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		page := template.Must(shared.Clone())
		pages[name] = template.Must(page.ParseFS(files, "templates/"+entry.Name()))
	}
	byServed := make(map[string]asset, len(byName))
	for _, a := range byName {
		byServed[a.name] = a
	}
	return pages, byServed
}

// commands returns a text whose commands, between backquotes, are set as code.
func commands(text string) template.HTML {
	var out strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		out.WriteString(part)
	}
	return template.HTML(out.String())
}

// form is the address and the token of a form.
type form struct{ Action, Token string }

// page is what the layout shows.
type page struct {
	Title    string
	Nav      string // part of the navigation that the page belongs to
	Visit    *visit
	SignedIn bool
	Operator bool
	Account  account.Account
	Query    string // text of the search box
	Refresh  int    // seconds until a browser without JavaScript loads the page again, 0 for never
	Now      time.Time
	Body     any
}

// refreshing is a body whose page loads itself again.
type refreshing interface{ refresh() int }

// render answers with a page.
func (v *visit) render(name, title, nav string, body any) error {
	p := page{
		Title: title, Nav: nav, Visit: v, SignedIn: v.id != "", Operator: v.session.Operator, Account: v.account,
		Query: v.r.URL.Query().Get("q"), Now: v.console.now(), Body: body,
	}
	if b, ok := body.(refreshing); ok {
		p.Refresh = b.refresh()
	}
	var out bytes.Buffer
	templates, _ := parsed()
	if err := templates[name].Execute(&out, p); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.status != 0 {
		v.w.WriteHeader(v.status)
	}
	_, err := v.w.Write(out.Bytes())
	return err
}

// Base returns the address of the service as the browser knows it.
func (v *visit) Base() string {
	scheme := "http"
	if _, tls := v.console.client(v.r); tls {
		scheme = "https"
	}
	return scheme + "://" + v.r.Host
}

// serveStatic answers with a static file. Its name changes with its content.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	_, assets := parsed()
	file, ok := assets[r.PathValue("name")]
	if !ok {
		http.Error(w, "This file does not exist.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", file.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(file.content) // an error means that the client is gone
}

// count returns a number with thin spaces between thousands.
func count(n any) string {
	if pointer, ok := n.(*int64); ok && pointer != nil {
		n = *pointer
	}
	text := fmt.Sprint(n)
	start := 0
	if strings.HasPrefix(text, "-") {
		start = 1
	}
	for i := len(text) - 3; i > start; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// value returns the raw value of a signal with its unit, a dash if there is none.
func value(raw *float64, unit string) string {
	if raw == nil {
		return "–"
	}
	x := *raw
	switch {
	case unit == "boolean":
		return map[bool]string{true: "yes", false: "no"}[x != 0]
	case unit == "fraction" || unit == "share 0..1":
		return strconv.FormatFloat(100*x, 'f', 1, 64) + " %"
	case strings.HasPrefix(unit, "points 0.."):
		return short(x) + " of " + strings.TrimPrefix(unit, "points 0..")
	case strings.HasPrefix(unit, "%"):
		return short(x) + " " + unit
	}
	return short(x) + " " + unit
}

// short returns a number with four digits, and a word for large ones.
func short(x float64) string {
	for _, step := range []struct {
		from, unit float64
		word       string
	}{{1e12, 1e12, " T"}, {1e9, 1e9, " bn"}, {1e6, 1e6, " M"}, {1e4, 1e3, " k"}} {
		if math.Abs(x) >= step.from {
			return strconv.FormatFloat(x/step.unit, 'g', 4, 64) + step.word
		}
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// size returns a number of bytes in the largest unit.
func size(n uint64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// took returns a duration with three digits.
func took(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%d µs", d.Microseconds())
}

// span returns a duration of a rule, in hours or days.
func span(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0 && d > 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%g min", d.Minutes())
}

// words replaces the underscores of a code.
func words(code any) string { return strings.ReplaceAll(fmt.Sprint(code), "_", " ") }

// age returns how long ago an instant was, in the largest unit.
func age(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	case d < 100*24*time.Hour:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
	return at.Format("2006-01-02")
}

// moment is an instant beside its age.
type moment struct {
	At       time.Time
	Age, ISO string
}

// Moment returns an instant for the template "moment", which prints a dash for the zero time.
func (p page) Moment(when any) moment {
	at, _ := when.(time.Time)
	if pointer, ok := when.(*time.Time); ok && pointer != nil {
		at = *pointer
	}
	return moment{at.UTC(), age(at, p.Now), at.UTC().Format(time.RFC3339)}
}

// gradeClass returns the class of a grade in CSS.
func gradeClass(r scoring.Rating) string {
	return "grade-" + strings.ToLower(strings.NewReplacer("SVC-", "", "+", "p").Replace(string(r)))
}
