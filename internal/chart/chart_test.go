package chart

import (
	"encoding/xml"
	"slices"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	t.Parallel()
	f := func(a Axis, n int, want ...string) {
		t.Helper()
		var got []string
		for _, tick := range a.Ticks(n, nil) {
			got = append(got, tick.Label)
		}
		if !slices.Equal(got, want) {
			t.Errorf("ticks of %g to %g are %q, want %q", a.Low, a.High, got, want)
		}
	}
	f(Axis{Low: 0, High: 100}, 5, "0", "20", "40", "60", "80", "100")
	f(Axis{Low: 0, High: 1}, 5, "0", "0.2", "0.4", "0.6", "0.8", "1")
	f(Axis{Low: 42, High: 61}, 4, "45", "50", "55", "60")
	f(Axis{Low: 1, High: 1000, Log: true}, 5, "1", "10", "100", "1000")
}

func TestChart(t *testing.T) {
	t.Parallel()
	const hostile = `</svg><script>"&`
	c := New("chart", hostile, 200, 100, Frame{Left: 20, Top: 10, Right: 190, Bottom: 80}, Axis{Low: 0, High: 10},
		Axis{Low: 1, High: 100, Log: true})
	if x, y := c.X.At(5), c.Y.At(10); x != 105 || y != 45 || c.Y.At(1) != 80 || c.Y.At(100) != 10 {
		t.Errorf("the middle is at %g, %g", x, y)
	}
	c.Grid([]Tick{{5, hostile}}, c.Y.Ticks(3, nil))
	c.Bar("bar", 50, 80, 40, 30, hostile)
	c.Point("dot", 1, 2, 3, hostile)
	c.Curve("line", [][2]float64{{1, 2}, {3.25, 4}}, hostile)
	c.Area("area", [][2]float64{{1, 2}, {3, 4}, {5, 6}})
	svg := string(c.SVG())
	if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
		t.Errorf("%v in %s", err, svg)
	}
	for _, want := range []string{`x="40.0" y="30.0" width="10.0" height="50.0"`, `points="1.0,2.0 3.2,4.0"`, `>100</text>`,
		`text-anchor="end"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in %s", want, svg)
		}
	}
	if strings.Contains(svg, "<script") || strings.Contains(svg, "style") {
		t.Errorf("not safe: %s", svg)
	}
}
