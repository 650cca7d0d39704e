package backtest

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// confidence is the number of standard errors from an estimate to its bounds of 95 %.
const confidence = 1.959964

// Estimate is a figure of a sample with its confidence bounds of 95 %.
type Estimate struct {
	Companies int     `json:"companies"`
	Value     float64 `json:"value"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
}

// pair is the composite of a company and its outcome.
type pair struct{ composite, outcome float64 }

// correlationMin is the number of companies from which a correlation has bounds.
const correlationMin = 4

// correlate returns the Spearman correlation of composites and outcomes. The bounds are those of
// Fisher's z with the variance by Bonett and Wright (2000). It returns nil for fewer than
// correlationMin companies and if all composites or all outcomes are equal.
func correlate(pairs []pair) *Estimate {
	if len(pairs) < correlationMin {
		return nil
	}
	xs, ys := make([]float64, len(pairs)), make([]float64, len(pairs))
	for i, p := range pairs {
		xs[i], ys[i] = p.composite, p.outcome
	}
	r := pearson(ranks(xs), ranks(ys))
	if math.IsNaN(r) {
		return nil
	}
	r = max(-1, min(r, 1))
	half := confidence * math.Sqrt((1+r*r/2)/float64(len(pairs)-3))
	return &Estimate{len(pairs), r, math.Tanh(math.Atanh(r) - half), math.Tanh(math.Atanh(r) + half)}
}

// ranks returns the rank of each value from 1, equal values the middle of their ranks.
func ranks(xs []float64) []float64 {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(xs[a], xs[b]) })
	out := make([]float64, len(xs))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && xs[order[j]] == xs[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j+1) / 2
		}
		i = j
	}
	return out
}

// pearson returns the correlation of two lists, NaN if the values of one are equal.
func pearson(xs, ys []float64) float64 {
	var mx, my float64
	for i := range xs {
		mx += xs[i]
		my += ys[i]
	}
	mx, my = mx/float64(len(xs)), my/float64(len(ys))
	var xy, xx, yy float64
	for i := range xs {
		dx, dy := xs[i]-mx, ys[i]-my
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	return xy / math.Sqrt(xx*yy)
}

// separate returns the AUC: the probability that a good company has a higher composite than a bad
// one, equal composites counted half. The bounds are by Hanley and McNeil (1982). It returns nil
// if one of the lists is empty.
func separate(good, bad []float64) *Estimate {
	if len(good) == 0 || len(bad) == 0 {
		return nil
	}
	r := ranks(slices.Concat(good, bad))
	var sum float64
	for i := range good {
		sum += r[i]
	}
	n, m := float64(len(good)), float64(len(bad))
	a := (sum - n*(n+1)/2) / (n * m)
	q1, q2 := a/(2-a), 2*a*a/(1+a)
	half := confidence * math.Sqrt(max(a*(1-a)+(n-1)*(q1-a*a)+(m-1)*(q2-a*a), 0)/(n*m))
	return &Estimate{len(good) + len(bad), a, max(0, a-half), min(1, a+half)}
}

// roc returns the points of the ROC curve of two lists that are not empty: the share of bad and of
// good companies with at least a composite, for each composite, highest first.
func roc(good, bad []float64) [][2]float64 {
	good, bad = descending(good), descending(bad)
	points := [][2]float64{{0, 0}}
	for i, j := 0, 0; i < len(good) || j < len(bad); {
		cut := math.Inf(-1)
		if i < len(good) {
			cut = good[i]
		}
		if j < len(bad) {
			cut = max(cut, bad[j])
		}
		for i < len(good) && good[i] == cut {
			i++
		}
		for j < len(bad) && bad[j] == cut {
			j++
		}
		points = append(points, [2]float64{float64(j) / float64(len(bad)), float64(i) / float64(len(good))})
	}
	return points
}

func descending(xs []float64) []float64 {
	xs = slices.Sorted(slices.Values(xs))
	slices.Reverse(xs)
	return xs
}

// modalShare returns the share of the most frequent value, 0 to 1, and the lowest such value.
func modalShare(xs []float64) (share, at float64) {
	counts := make(map[float64]int)
	for _, x := range xs {
		counts[x]++
	}
	best := 0
	for _, x := range slices.Sorted(maps.Keys(counts)) {
		if counts[x] > best {
			best, at = counts[x], x
		}
	}
	return float64(best) / float64(len(xs)), at
}

// quantile returns the smallest value with at least a share of the rising values at or below it.
func quantile(rising []float64, share float64) float64 {
	i := int(math.Ceil(share*float64(len(rising)))) - 1
	return rising[max(0, min(i, len(rising)-1))]
}

func round1(x float64) float64 { return math.Round(x*10) / 10 }
