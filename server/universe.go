package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/internal/account"
	"companyscore/scoring"
	"companyscore/server/api"
	"companyscore/server/keys"
	"companyscore/server/sandbox"
	"companyscore/universe"
)

const (
	cohortAge     = time.Minute
	cohortSizeMax = 256 << 10 // bytes of a cohort: 200 members with their names
	// atOnceAge is the max-age of what servers adopt at once.
	atOnceAge = 10 * time.Second
	// sandboxAge is the max-age of movers and distribution of the sandbox.
	sandboxAge = 5 * time.Minute
)

// epochLeft returns the time until servers adopt new statistics. It is atOnceAge for those that
// they adopt at once.
func epochLeft(epoch time.Duration, now time.Time) time.Duration {
	if epoch == 0 {
		return atOnceAge
	}
	return universe.Adopted(epoch, now).Sub(now)
}

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
		return s.send(c, body, replyInfo{origin: originSandbox, maxAge: cohortAge})
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
	counted, err := tables.CountedRecord(ctx, s.Scores, newest)
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

// getDistribution returns the distribution of all companies.
func (s *Server) getDistribution(c *fiber.Ctx) error {
	who := callerOf(c)
	if who.Mode == account.Test {
		return s.send(c, sandbox.Distribution(), replyInfo{origin: originSandbox, maxAge: sandboxAge})
	}
	tables, err := s.live(who)
	if err != nil {
		return err
	}
	bodies, err := s.universe.of(tables)
	if err != nil {
		return err
	}
	return s.sendRendered(c, bodies.distribution, replyInfo{origin: originTable, maxAge: epochLeft(tables.Epoch(), s.now())})
}

// getMovers returns the movers of a window.
func (s *Server) getMovers(c *fiber.Ctx) error {
	who := callerOf(c)
	window := universe.Window(strings.Clone(c.Query("window")))
	if window.Length() == 0 {
		return &errWindow
	}
	evidence, err := queryIncludes(c)
	if err != nil {
		return err
	}
	if who.Mode == account.Test {
		return s.send(c, sandbox.Movers(window, s.now(), evidence), replyInfo{origin: originSandbox, maxAge: sandboxAge})
	}
	tables, err := s.live(who)
	if err != nil {
		return err
	}
	bodies, err := s.universe.of(tables)
	if err != nil {
		return err
	}
	r, ok := bodies.movers[moversKey{window, evidence}]
	if !ok {
		return &errNotCounted // before the first movers job
	}
	return s.sendRendered(c, r, replyInfo{origin: originTable, maxAge: epochLeft(tables.Movers().Epoch, s.now())})
}

// universeBodies caches the bodies made from the newest tables. It is safe for concurrent use.
type universeBodies struct{ newest atomic.Pointer[tablesBodies] }

// tablesBodies are the bodies made from tables.
type tablesBodies struct {
	tables       *universe.Tables
	distribution rendered
	movers       map[moversKey]rendered // empty before the first movers job
}

type moversKey struct {
	window   universe.Window
	evidence bool
}

func (u *universeBodies) of(tables *universe.Tables) (*tablesBodies, error) {
	if kept := u.newest.Load(); kept != nil && kept.tables == tables {
		return kept, nil
	}
	made := &tablesBodies{tables: tables, movers: make(map[moversKey]rendered)}
	var err error
	if made.distribution, err = render(api.NewDistribution(tables)); err != nil {
		return nil, err
	}
	for window, list := range tables.Movers().Lists {
		for _, evidence := range []bool{false, true} {
			if made.movers[moversKey{window, evidence}], err = render(api.NewMovers(window, list, evidence)); err != nil {
				return nil, err
			}
		}
	}
	u.newest.Store(made)
	return made, nil
}

// live returns the tables of live data. The error is errSandboxInvariant for a test key, and
// errNotCounted before the first snapshot.
func (s *Server) live(who keys.Caller) (*universe.Tables, error) {
	if who.Mode != account.Live {
		return nil, fmt.Errorf("%w: key %s of account %s", &errSandboxInvariant, who.KeyID, who.Account.ID)
	}
	tables := s.Universe.Tables(s.now())
	if tables == nil {
		return nil, &errNotCounted
	}
	return tables, nil
}
