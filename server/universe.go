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

	"companyscore/internal/account"
	"companyscore/scoring"
	"companyscore/server/api"
	"companyscore/server/directory"
	"companyscore/server/sandbox"
	"companyscore/universe"
)

const (
	cohortAge       = time.Minute
	cohortSizeMax   = 256 << 10 // bytes of a cohort: 200 members with their names
	distributionAge = time.Minute
	// moversAge is the lifetime of a cached list of movers.
	moversAge = 5 * time.Minute
)

var windows = func() []string {
	names := make([]string, len(universe.Windows))
	for i, w := range universe.Windows {
		names[i] = string(w)
	}
	return names
}()

// getCohort returns the comparison of a company with its cohort.
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
	if err := s.reserveAnswer(c, ctx, cohortSizeMax); err != nil {
		return err
	}
	key := fmt.Sprintf("cohort %d", tables.At().UnixMilli())
	return s.sendPage(c, ctx, domain, key, cohortAge, func(ctx context.Context) ([]byte, error) {
		return s.cohortBody(ctx, domain, tables)
	})
}

// cohortBody returns the body that compares the newest record of a company with its cohort
// in the tables.
func (s *Server) cohortBody(ctx context.Context, domain string, tables *universe.Tables) ([]byte, error) {
	newest, err := s.newest(ctx, domain)
	if err != nil {
		return nil, err
	}
	counted, err := s.counted(ctx, newest, tables)
	if err != nil {
		return nil, err
	}
	return json.Marshal(api.NewCohort(newest.Record, tables.Compare(newest.Record, counted)))
}

// newest returns the newest record of a company. The record is cached as a page, so a new
// snapshot does not cause a query per company.
func (s *Server) newest(ctx context.Context, domain string) (universe.Stored, error) {
	text, _, err := s.Cache.Page(ctx, domain, "newest", func(ctx context.Context) ([]byte, error) {
		newest, err := s.Scores.Newest(ctx, domain)
		if errors.Is(err, scoring.ErrNotFound) {
			return nil, &errNoHistory
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(newest)
	})
	if err != nil {
		return universe.Stored{}, err
	}
	var newest universe.Stored
	if err := json.Unmarshal(text, &newest); err != nil {
		return universe.Stored{}, fmt.Errorf("newest record of %s: %w", domain, err)
	}
	return newest, nil
}

// counted returns the record of a company that the tables include, nil if they include none.
// It is the newest record, or an older one if the company was scored after the count.
func (s *Server) counted(ctx context.Context, newest universe.Stored, tables *universe.Tables) (*scoring.Record, error) {
	if tables.Counted(newest) {
		return &newest.Record, nil
	}
	if newest.PipelineVersion != tables.PipelineVersion() || !scoring.KeyOf(newest.Record).Peers() {
		return nil, nil // the company belongs to no cohort of the tables
	}
	records, err := s.Scores.WrittenSince(ctx, newest.Domain, newest.PipelineVersion, tables.Settled())
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if tables.Counted(r) {
			return &r.Record, nil
		}
	}
	return nil, nil
}

// getDistribution returns the distribution of all companies.
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

// distributionCache caches the body made from the newest tables.
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

// getMovers returns the movers of a window.
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
	r, left, err := s.movers.of(tables.Movers(), window, s.now())
	if err != nil {
		return err
	}
	return s.sendRendered(c, r, answer{tier: tierTable, maxAge: left})
}

// moversCache caches the bodies of movers for moversAge. It is safe for concurrent use.
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

// of returns the body for a window and the rest of its lifetime. The error is errNotCounted
// before the first movers job.
func (m *moversCache) of(movers universe.Movers, window universe.Window, now time.Time) (rendered, time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := moversKey{movers.PipelineVersion, window}
	kept, ok := m.bodies[key]
	if !ok || !now.Before(kept.until) {
		list, ok := movers.Lists[window]
		if !ok {
			return rendered{}, 0, &errNotCounted
		}
		body, err := render(api.NewMovers(window, list))
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

// version returns the pipeline version of the bodies, empty if there are none.
func (m *moversCache) version() string {
	for key := range m.bodies {
		return key.version
	}
	return ""
}

// live returns the tables of live data. The error is errSandboxInvariant for a test key, and
// errNotCounted before the first snapshot.
func (s *Server) live(who directory.Caller) (*universe.Tables, error) {
	if who.Mode != account.Live {
		return nil, fmt.Errorf("%w: key %s of account %s", &errSandboxInvariant, who.KeyID, who.Account.ID)
	}
	tables := s.Universe.Tables()
	if tables == nil {
		return nil, &errNotCounted
	}
	return tables, nil
}
