package cache

import (
	"context"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// pageHeader is the size of the fixed fields of a page in memory: the generation of its
// company and its deadline in unix ms.
const pageHeader = 16

// Page returns a body that depends on one company, and whether it was in memory. key
// identifies the body among those of the company. If the body is not in memory, Page
// calls build, once for concurrent callers and with a context that does not end with ctx.
// A page is valid for 30 seconds, or until the company has a new score. The body must not
// be modified.
func (c *Cache) Page(ctx context.Context, domain, key string, build func(ctx context.Context) ([]byte, error)) (body []byte, hit bool,
	err error) {
	name := []byte(key + "\x00" + domain)
	generation := c.generation(xxhash.Sum64String(domain))
	if b := c.pages.GetBig(nil, name); len(b) >= pageHeader && binary.LittleEndian.Uint64(b) == generation &&
		int64(binary.LittleEndian.Uint64(b[8:])) > c.now().UnixMilli() {
		return b[pageHeader:], true, nil
	}
	// The generation is part of the singleflight key: a caller after an event must not
	// get a body that was made before it.
	flight := string(binary.LittleEndian.AppendUint64(name, generation))
	ch := c.flights.DoChan(flight, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pageMax)
		defer cancel()
		body, err := build(ctx)
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
