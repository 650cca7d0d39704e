package source

import (
	"context"

	"companyscore/scoring/source/fetch"
)

// live is the part that all live sources share. A source embeds it.
type live struct {
	client *fetch.Client
	name   string
	after  []string
}

// newLive returns the shared part of a source. after are the sources that it waits for.
func newLive(c *fetch.Client, name string, after ...string) live {
	return live{client: c, name: name, after: after}
}

// Name returns the key of the source.
func (l live) Name() string { return l.name }

// Plan returns when the source runs, with the deadline of its policy.
func (l live) Plan() Plan { return Plan{After: l.after, Deadline: fetch.PolicyOf(l.name).Deadline} }

// Background is a source with work besides runs. The worker calls Run once, before the
// first Fetch. Run returns when ctx ends. Ready is closed when Run has made its first attempt to
// get what Fetch needs.
type Background interface {
	Source
	Run(ctx context.Context)
	Ready() <-chan struct{}
}
