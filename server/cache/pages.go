package cache

import (
	"context"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// pageHeader is the generation of a page's company and the page's deadline.
const pageHeader = 16

// Page returns a body that depends on one company, and whether it was in memory.
// key tells its bodies apart; make is called for one that is not in memory, once
// for all who ask for it at the time, and gets a context of its own. Pages count
// for half a minute, and until news of the company. They must not be changed.
func (c *Cache) Page(ctx context.Context, domain, key string, make func(ctx context.Context) ([]byte, error)) (body []byte, hit bool, err error) {
	name := []byte(key + "\x00" + domain)
	generation := c.generation(xxhash.Sum64String(domain))
	if b := c.pages.GetBig(nil, name); len(b) >= pageHeader && binary.LittleEndian.Uint64(b) == generation &&
		int64(binary.LittleEndian.Uint64(b[8:])) > c.now().UnixMilli() {
		return b[pageHeader:], true, nil
	}
	// Pages of different generations are different flights: who asks after news of
	// the company must not get what was looked up before.
	flight := string(binary.LittleEndian.AppendUint64(name, generation))
	ch := c.flights.DoChan(flight, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pageMax)
		defer cancel()
		body, err := make(ctx)
		if err != nil {
			return []byte(nil), err
		}
		b := binary.LittleEndian.AppendUint64(nil, generation)
		b = binary.LittleEndian.AppendUint64(b, uint64(c.now().Add(freshFor).UnixMilli()))
		c.pages.SetBig(name, append(b, body...))
		return body, nil
	})
	select {
	case r := <-ch:
		if r.Err != nil {
			return nil, false, r.Err
		}
		return r.Val.([]byte), false, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}
