package fetch

import (
	"fmt"
	"strings"
	"time"
)

// String describes a quota, such as "wikimedia: 100 per minute, 2 at once, shared by all
// workers".
func (q Quota) String() string {
	per := map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour"}[q.Per]
	if per == "" {
		per = Short(q.Per)
	}
	text := fmt.Sprintf("%s: %d per %s, %d at once", q.Name, q.Requests, per, q.InFlight)
	if q.PerHost {
		text += ", each host"
	}
	if q.Shared {
		text += ", shared by all workers"
	}
	return text
}

// Short formats a duration without zero units: 24h, not 24h0m0s.
func Short(d time.Duration) string {
	text := d.String()
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text = strings.TrimSuffix(text, "0s")
	if strings.HasSuffix(text, "h0m") {
		return strings.TrimSuffix(text, "0m")
	}
	if strings.HasSuffix(text, "m") || strings.HasSuffix(text, "h") {
		return text
	}
	return d.String()
}

// Size formats a number of bytes in KiB or MiB.
func Size(n int64) string {
	if n >= miB {
		return fmt.Sprintf("%d MiB", n/miB)
	}
	return fmt.Sprintf("%d KiB", n/kiB)
}
