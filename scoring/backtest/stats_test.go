package backtest

import (
	"math"
	"slices"
	"testing"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-4 {
		t.Errorf("%s = %.6f, want %.6f", what, got, want)
	}
}

func TestCorrelateByHand(t *testing.T) {
	t.Parallel()
	// Ranks 1 2 3 4 5 and 2 1 4 3 5: squared differences sum to 4, so rho = 1 - 6*4/(5*24) = 0.8.
	e := correlate([]pair{{10, 20}, {20, 10}, {30, 400}, {40, 30}, {50, 500}})
	near(t, "rho", e.Value, 0.8)
	// atanh 0.8 = 1.098612; standard error sqrt((1+0.32)/2) = 0.812404; times 1.959964 = 1.592282.
	near(t, "low", e.Low, math.Tanh(1.098612-1.592282))
	near(t, "high", e.High, math.Tanh(1.098612+1.592282))
	if e.Companies != 5 {
		t.Errorf("%d companies, want 5", e.Companies)
	}
	near(t, "falling", correlate([]pair{{1, 4}, {2, 3}, {3, 2}, {4, 1}}).Value, -1)
	for name, pairs := range map[string][]pair{"three": {{1, 1}, {2, 2}, {3, 3}}, "equal scores": {{5, 1}, {5, 2}, {5, 3}, {5, 4}},
		"equal outcomes": {{1, 7}, {2, 7}, {3, 7}, {4, 7}}} {
		if e := correlate(pairs); e != nil {
			t.Errorf("%s: %+v, want none", name, *e)
		}
	}
}

func TestRanksShareTies(t *testing.T) {
	t.Parallel()
	if got := ranks([]float64{7, 3, 7, 9, 3, 7}); !slices.Equal(got, []float64{4, 1.5, 4, 6, 1.5, 4}) {
		t.Errorf("ranks = %v", got)
	}
}

func TestSeparateByHand(t *testing.T) {
	t.Parallel()
	// Of the 6 comparisons of 3 and 2 companies, 4 are won, one is a tie: 4.5/6.
	good, bad := []float64{9, 5, 7}, []float64{5, 6}
	e := separate(good, bad)
	near(t, "AUC", e.Value, 0.75)
	// Q1 = 0.75/1.25 = 0.6, Q2 = 1.125/1.75 = 0.642857; variance = (0.1875 + 2*0.0375 + 0.080357)/6 = 0.057143.
	near(t, "low", e.Low, 0.75-1.959964*math.Sqrt(0.057143))
	near(t, "high", e.High, 1)
	near(t, "opposite", separate(bad, good).Value, 0.25)
	if separate(good, nil) != nil || separate(nil, bad) != nil {
		t.Error("an AUC of one class")
	}
}

func TestROCEnclosesTheAUC(t *testing.T) {
	t.Parallel()
	good, bad := []float64{9, 5, 7}, []float64{5, 6}
	curve := roc(good, bad)
	want := [][2]float64{{0, 0}, {0, 1. / 3}, {0, 2. / 3}, {0.5, 2. / 3}, {1, 1}}
	if !slices.Equal(curve, want) {
		t.Errorf("curve = %v, want %v", curve, want)
	}
	area := 0.0
	for i := range curve[1:] {
		area += (curve[i+1][0] - curve[i][0]) * (curve[i+1][1] + curve[i][1]) / 2
	}
	near(t, "area", area, separate(good, bad).Value)
}

func TestSharesAndQuantiles(t *testing.T) {
	t.Parallel()
	share, at := modalShare([]float64{3, 1, 2, 1, 2})
	near(t, "share", share, 0.4)
	near(t, "at", at, 1)
	rising := []float64{1, 2, 3, 4}
	for share, want := range map[float64]float64{0: 1, 0.25: 1, 0.26: 2, 0.5: 2, 1: 4} {
		near(t, "quantile", quantile(rising, share), want)
	}
	near(t, "above", shareAbove(rising, 3), 25)
}

func TestCliffsAreSummarised(t *testing.T) {
	t.Parallel()
	got := summarise([]Cliff{{"a.com", "x", 1}, {"b.com", "x", -6}, {"c.com", "y", 4}, {"d.com", "x", 0}})
	if got.Cases != 4 || got.Max != 6 || got.Above3 != 50 || got.Above5 != 25 {
		t.Errorf("cliffs = %+v", got)
	}
	if want := []FactCliffs{{"x", 3, 1, 6, 6, 100. / 3}, {"y", 1, 4, 4, 4, 100}}; !slices.Equal(got.Facts, want) {
		t.Errorf("facts = %+v, want %+v", got.Facts, want)
	}
	if got.Largest[0] != (Cliff{"b.com", "x", -6}) {
		t.Errorf("largest = %+v", got.Largest)
	}
}

func TestCoverageIsWeightedByCases(t *testing.T) {
	t.Parallel()
	got := meanCoverage([]Coverage{{10, 80, 2, 20}, {30, 100, 6, 40}, {}})
	if got != (Coverage{40, 95, 5, 35}) {
		t.Errorf("mean = %+v", got)
	}
}
