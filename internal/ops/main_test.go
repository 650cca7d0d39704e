package ops

import (
	"testing"

	"companyscore/internal/test/stores"
)

func TestMain(m *testing.M) { stores.Main(m) }
