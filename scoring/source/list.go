package source

import (
	"context"
	"log/slog"
	"sync"

	"companyscore/scoring/source/fetch"
)

// Live returns the sources that use the network. Their order has no effect. The lists of
// traffic ranks are files in the directory ranks, or only in memory if it is empty.
func Live(c *fetch.Client, ranks string, logger *slog.Logger) []Source {
	return []Source{
		NewRDAP(c), NewDNS(c), NewTLS(c), NewCT(c), NewWayback(c), NewHackerNews(c), NewGDELT(c), NewTranco(c, ranks, logger),
		NewWeb(c), NewWikidata(c), NewPageviews(c), NewSEC(c), NewGLEIF(c), NewRepositories(c), NewJobs(c),
	}
}

var _ Background = (*Tranco)(nil)

// RunBackground runs the work besides runs of all sources that have some, until ctx ends. The
// returned function waits for the end of that work.
func RunBackground(ctx context.Context, sources []Source) (wait func()) {
	var running sync.WaitGroup
	for _, s := range sources {
		if b, ok := s.(Background); ok {
			running.Go(func() { b.Run(ctx) })
		}
	}
	return running.Wait
}

// Names returns the keys of the sources that are not off.
func Names(sources []Source) []string {
	var names []string
	for _, s := range sources {
		if s.Plan().Off == "" {
			names = append(names, s.Name())
		}
	}
	return names
}
