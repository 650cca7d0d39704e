package process

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestPartsEndInReverseOrder(t *testing.T) {
	t.Parallel()
	var parts Parts
	var ended []string
	first, third := errors.New("first"), errors.New("third")
	end := func(name string, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); ctx.Err() != nil || !bounded {
				t.Errorf("%s: context ended with %v, has a deadline: %v", name, ctx.Err(), bounded)
			}
			ended = append(ended, name)
			return err
		}
	}
	parts.Defer(end("first", first))
	parts.DeferFunc(func() { ended = append(ended, "second") })
	parts.Defer(end("third", third))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := parts.Close(ctx); !errors.Is(err, first) || !errors.Is(err, third) {
		t.Errorf("Close returns %v, want both errors", err)
	}
	if want := []string{"third", "second", "first"}; !slices.Equal(ended, want) {
		t.Errorf("parts end as %v, want %v", ended, want)
	}
	if err := parts.Close(ctx); err != nil || len(ended) != 3 {
		t.Errorf("a second Close returns %v and ends %d parts", err, len(ended)-3)
	}
}
