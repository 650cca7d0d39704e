package backtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCountCurves(t *testing.T) {
	t.Parallel()
	var a, b strings.Builder
	a.WriteString("domain,revenue_usd,signal:net_margin,signal:liabilities_to_assets\n")
	b.WriteString("subject,signal:net_margin,signal:ats_in_use\n")
	for i := 1; i <= 10; i++ {
		fmt.Fprintf(&a, ",%d,%d,0.%02d\n", 1_000_000*i, i, i)
		fmt.Fprintf(&b, "a,%d,1\n", 10+i)
	}
	a.WriteString(",999999,50,9\n,,50,9\n,2000000,,-1\n,2000000,1e999,x\n") // too small, of unknown size, without values
	counts, err := CountCurves([]string{file(t, "a.csv", a.String()), file(t, "b.csv", b.String())})
	if err != nil {
		t.Fatal(err)
	}
	if len(counts) != 2 {
		t.Fatalf("counts = %+v", counts)
	}
	if got := counts[0]; got.Signal != "net_margin" || got.Companies != 20 || got.Counted != [3]float64{2, 10, 18} ||
		fmt.Sprintf("%.2f", got.Curve) != "[-0.65 0.06 0.27]" {
		t.Errorf("net margin: %+v", got)
	}
	if got := counts[1]; got.Signal != "liabilities_to_assets" || got.Companies != 10 || got.Counted != [3]float64{0.09, 0.05, 0.01} ||
		fmt.Sprintf("%.2f", got.Curve) != "[0.89 0.55 0.19]" {
		t.Errorf("liabilities: %+v", got)
	}
	for text, want := range map[string]string{
		"": "EOF", "domain\n": "no column", "signal:beauty\n1\n": `"beauty"`, "signal:net_margin\n\"\"\n": "no values",
		"signal:net_margin,a\n1\n": "wrong number of fields",
	} {
		if _, err := CountCurves([]string{file(t, "c.csv", text)}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
