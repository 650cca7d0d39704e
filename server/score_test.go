package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"companyscore/server/meter"
)

// A caller reads "not charged" only when that is certain.
func TestEngineProblemSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	lost := fmt.Errorf("admit cold call: %w: %w", meter.ErrOutcomeUnknown, errors.New("i/o timeout"))
	for _, c := range []struct {
		err                error
		key, says, conceal string
	}{
		{errors.New("away"), "", "was not charged", "not known"},
		{errors.New("away"), "once", "was not charged", "not known"},
		{lost, "", "not known", "not charged"},
		{lost, "once", "Repeat the request with the same Idempotency-Key", "not charged"},
	} {
		p := engineProblem(c.err, meter.AdmitRequest{IdempotencyKey: c.key})
		if p.Status != 500 || p.Code != "scoring engine unavailable" || !strings.Contains(p.Message, c.says) || strings.Contains(p.Message, c.conceal) {
			t.Errorf("%v with key %q: %+v; want %q and not %q", c.err, c.key, p, c.says, c.conceal)
		}
	}
}
