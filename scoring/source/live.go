package source

import (
	"context"
	"log/slog"

	"companyscore/scoring/source/fetch"
)

// Background is a source with work of its own beside the runs. Run works until
// ctx ends; the worker starts it once, before the first Fetch.
type Background interface {
	Source
	Run(ctx context.Context)
}

// Live returns the sources that read the network, each through the client. Their
// order has no effect. Lists of traffic ranks are kept as files in the directory
// ranks, or in memory only when it is empty.
func Live(c *fetch.Client, ranks string, logger *slog.Logger) []Source {
	return []Source{
		NewRDAP(c), NewDNS(c), NewTLS(c), NewCT(c), NewWayback(c), NewHackerNews(c), NewGDELT(c), NewTranco(c, ranks, logger),
		NewWeb(c), NewWikidata(c), NewPageviews(c), NewSEC(c), NewGLEIF(c), NewRepositories(c), NewJobs(c),
	}
}

var _ Background = (*Tranco)(nil)
