package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/scoring"
	"companyscore/server/account"
	"companyscore/server/api"
	"companyscore/server/sandbox"
	"companyscore/universe"
)

const (
	cohortAge       = time.Minute
	distributionAge = time.Minute
	// moversAge is for how long equal requests get equal lists of movers.
	moversAge = 5 * time.Minute
)

var windows = func() []string {
	names := make([]string, len(universe.Windows))
	for i, w := range universe.Windows {
		names[i] = string(w)
	}
	return names
}()

// getCohort compares a company with its peers.
func (s *Server) getCohort(c *fiber.Ctx) error {
	who := callerOf(c)
	domain, err := pathDomain(who.Mode, c.Params("*"))
	if err != nil {
		return err
	}
	if who.Mode == account.Test {
		body, _ := sandbox.Cohort(domain, s.now())
		return s.send(c, body, answer{tier: tierSandbox, maxAge: cohortAge})
	}
	tables, err := s.live(who)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), requestMax)
	defer cancel()
	generation, note := tables.Count()
	key := fmt.Sprintf("cohort %d %d", generation, note)
	return s.sendPage(c, ctx, domain, key, cohortAge, func(ctx context.Context) ([]byte, error) {
		return s.cohortBody(ctx, domain, tables)
	})
}

// cohortBody compares a company with its peers as tables count them.
func (s *Server) cohortBody(ctx context.Context, domain string, tables *universe.Tables) ([]byte, error) {
	st, err := s.standing(ctx, domain, tables)
	if err != nil {
		return nil, err
	}
	key := groupOf(st.Latest)
	var out *universe.Target
	if tables.CountedIn(st.Counted, key) {
		out = &st.Counted.Target
	}
	return json.Marshal(api.NewCohort(st.Latest, tables.Compare(key, targetOf(st.Latest), out)))
}

// standing is a company and how a count counted it.
type standing struct {
	Latest           scoring.Record
	Counted          *universe.Counted
	Generation, Note uint64
}

// fits reports whether the standing tells how tables count the company. Once the
// newest record is counted, later counts count it too.
func (st *standing) fits(tables *universe.Tables) bool {
	generation, note := tables.Count()
	return st.Generation == generation && st.Note == note ||
		st.Counted != nil && st.Latest.PipelineVersion == tables.PipelineVersion() && st.Counted.ScoredAt.Equal(st.Latest.ScoredAt) && st.Note <= note
}

// standing finds how tables count a company. It is remembered across counts, so
// that new tables do not send everyone to the store.
func (s *Server) standing(ctx context.Context, domain string, tables *universe.Tables) (standing, error) {
	generation, note := tables.Count()
	find := func(ctx context.Context) ([]byte, error) {
		newest, written, err := s.Scores.Newest(ctx, domain)
		switch {
		case errors.Is(err, scoring.ErrNotFound):
			return nil, &errNoHistory
		case err != nil:
			return nil, err
		}
		counted, known := tables.CountedAs(newest, written)
		if !known {
			if counted, err = s.Scores.Counted(ctx, domain, generation, note); err != nil {
				return nil, err
			}
		}
		return json.Marshal(standing{newest, counted, generation, note})
	}
	var st standing
	for _, key := range []string{"standing", fmt.Sprintf("standing %d %d", generation, note)} {
		text, _, err := s.Cache.Page(ctx, domain, key, find)
		if err != nil {
			return standing{}, err
		}
		st = standing{}
		if err := json.Unmarshal(text, &st); err != nil {
			return standing{}, fmt.Errorf("standing of %s: %w", domain, err)
		}
		if st.fits(tables) {
			break
		}
	}
	return st, nil
}

func groupOf(rec scoring.Record) universe.GroupKey {
	return universe.GroupKey{Sector: rec.Sector, GeoScope: rec.GeoScope, Profile: rec.Profile}
}

func targetOf(rec scoring.Record) universe.Target {
	return universe.Target{Domain: rec.Domain, Composite: rec.Composite, Buckets: rec.Buckets}
}

// getDistribution describes all companies.
func (s *Server) getDistribution(c *fiber.Ctx) error {
	who := callerOf(c)
	if who.Mode == account.Test {
		return s.send(c, sandbox.Distribution(), answer{tier: tierSandbox, maxAge: distributionAge})
	}
	tables, err := s.live(who)
	if err != nil {
		return err
	}
	r, err := s.distribution.of(tables)
	if err != nil {
		return err
	}
	return s.sendRendered(c, r, answer{tier: tierTable, maxAge: distributionAge})
}

// distributionCache keeps the body made of the newest tables.
type distributionCache struct {
	mu     sync.Mutex
	tables *universe.Tables
	body   rendered
}

func (d *distributionCache) of(tables *universe.Tables) (rendered, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tables != tables {
		body, err := render(api.NewDistribution(tables))
		if err != nil {
			return rendered{}, err
		}
		d.tables, d.body = tables, body
	}
	return d.body, nil
}

// getMovers lists whose score changed most.
func (s *Server) getMovers(c *fiber.Ctx) error {
	who := callerOf(c)
	window := universe.Window(strings.Clone(c.Query("window")))
	if window.Length() == 0 {
		return &errWindow
	}
	if who.Mode == account.Test {
		return s.send(c, sandbox.Movers(window, s.now()), answer{tier: tierSandbox, maxAge: moversAge})
	}
	tables, err := s.live(who)
	if err != nil {
		return err
	}
	r, left, err := s.movers.of(tables, window, s.now())
	if err != nil {
		return err
	}
	return s.sendRendered(c, r, answer{tier: tierTable, maxAge: left})
}

// moversCache gives equal requests equal bodies for moversAge.
type moversCache struct {
	mu     sync.Mutex
	bodies map[moversKey]moversBody
}

type moversKey struct {
	version string
	window  universe.Window
}

type moversBody struct {
	rendered
	until time.Time
}

// of returns the body for a window and how long it will stand.
func (m *moversCache) of(tables *universe.Tables, window universe.Window, now time.Time) (rendered, time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := moversKey{tables.PipelineVersion(), window}
	kept, ok := m.bodies[key]
	if !ok || !now.Before(kept.until) {
		movers, ok := tables.Movers(window)
		if !ok {
			return rendered{}, 0, fmt.Errorf("the universe has no movers of %s", window)
		}
		body, err := render(api.NewMovers(window, movers))
		if err != nil {
			return rendered{}, 0, err
		}
		kept = moversBody{body, now.Add(moversAge)}
		if m.bodies == nil || key.version != m.version() {
			m.bodies = make(map[moversKey]moversBody, len(universe.Windows))
		}
		m.bodies[key] = kept
	}
	return kept.rendered, kept.until.Sub(now), nil
}

// version is the pipeline version of the bodies.
func (m *moversCache) version() string {
	for key := range m.bodies {
		return key.version
	}
	return ""
}

// live returns the tables of live data, which a test key must never reach.
func (s *Server) live(who account.Caller) (*universe.Tables, error) {
	if who.Mode != account.Live {
		return nil, &errSandboxInvariant
	}
	tables := s.Universe.Tables()
	if tables == nil {
		return nil, &errNotCounted
	}
	return tables, nil
}
