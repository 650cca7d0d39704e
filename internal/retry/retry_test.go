package retry_test

import (
	"testing"
	"time"

	"companyscore/internal/retry"
)

func TestBackoffDoublesUpToLongest(t *testing.T) {
	t.Parallel()
	const first, longest = 100 * time.Millisecond, time.Second
	pauses := retry.Backoff(first, longest)
	for range 2 {
		want := first
		for range 20 {
			least, most := time.Duration(float64(want)*(1-retry.Jitter)), time.Duration(float64(want)*(1+retry.Jitter))+1
			if got := pauses.NextBackOff(); got < least || got > most {
				t.Errorf("pause of %s, want %s to %s", got, least, most)
			}
			want = min(2*want, longest)
		}
		pauses.Reset()
	}
}
