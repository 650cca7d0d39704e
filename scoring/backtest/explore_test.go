package backtest

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"companyscore/facts"
	"companyscore/scoring"
)

func TestExplore(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	path := os.Getenv("FILE")
	if path == "" {
		t.Skip()
	}
	r, err := facts.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var sample []Company
	for {
		c, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			continue
		}
		sample = append(sample, Company{Facts: c})
	}
	var comp, lrev, lrevc, lcap, lcapc, cls, clsc, op, dead, opw, deadw []float64
	ratings := map[scoring.Rating]int{}
	profiles := map[scoring.Profile]int{}
	unknown := 0
	order := map[string]float64{"nano": 1, "micro": 2, "small": 3, "mid": 4, "large": 5, "mega": 6}
	for _, c := range sample {
		rec := scoreFacts(c.Facts, now, nil)
		comp = append(comp, rec.Composite)
		ratings[rec.Rating]++
		profiles[rec.Profile]++
		if rec.Sector == "unknown" {
			unknown++
		}
		if c.Facts.RevenueUSD != nil {
			lrev = append(lrev, *c.Facts.RevenueUSD)
			lrevc = append(lrevc, rec.Composite)
		}
		if c.Facts.MarketCapUSD != nil {
			lcap = append(lcap, *c.Facts.MarketCapUSD)
			lcapc = append(lcapc, rec.Composite)
		}
		if v := order[c.Facts.MarketCapClass]; v > 0 {
			cls = append(cls, v)
			clsc = append(clsc, rec.Composite)
		}
		if c.Facts.FundingRounds != nil || c.Facts.FundingTotalUSD != nil || c.Facts.Source == "yc-2005-2014" {
			w := c.Facts
			w.Status = ""
			wr := scoreFacts(w, now, nil).Composite
			switch c.Facts.Status {
			case "operating":
				op, opw = append(op, rec.Composite), append(opw, wr)
			case "dead":
				dead, deadw = append(dead, rec.Composite), append(deadw, wr)
			}
		}
	}
	slices.Sort(comp)
	share, at := modalShare(comp)
	fmt.Printf("n %d ties %.3f at %.1f unknown %d\n", len(comp), share, at, unknown)
	for _, q := range []float64{0, .05, .25, .5, .75, .9, .99, 1} {
		fmt.Printf(" q%.2f=%.1f", q, comp[int(q*float64(len(comp)-1))])
	}
	fmt.Println(ratings, profiles)
	fmt.Printf("spearman revenue %.3f cap %.3f class %.3f (%d)\n", spearman(lrev, lrevc), spearman(lcap, lcapc), spearman(cls, clsc), len(cls))
	{
		var r, b, pr, a1, a2, n1, n2 []float64
		for _, c := range sample {
			if c.Facts.RevenueUSD == nil {
				continue
			}
			rec := scoreFacts(c.Facts, now, nil)
			r, b, pr = append(r, *c.Facts.RevenueUSD), append(b, rec.Base), append(pr, rec.ScalePremium)
			if c.Facts.MarketCapUSD != nil {
				a1, a2 = append(a1, *c.Facts.RevenueUSD), append(a2, rec.Composite)
			} else {
				n1, n2 = append(n1, *c.Facts.RevenueUSD), append(n2, rec.Composite)
			}
		}
		fmt.Printf("revenue: base %.3f premium %.3f; with cap %.3f (%d) without %.3f (%d)\n", spearman(r, b), spearman(r, pr), spearman(a1, a2), len(a1), spearman(n1, n2), len(n1))
		if len(a2) > 0 {
			slices.Sort(a2)
			slices.Sort(n2)
			fmt.Println(a2[len(a2)/2], n2[len(n2)/2])
		}
	}
	if len(dead) > 0 {
		a, e := auc(op, dead)
		b, f := auc(opw, deadw)
		fmt.Printf("auc given %.3f±%.3f withheld %.3f±%.3f\n", a, e, b, f)
	}
	if len(sample) > 2000 {
		rand.Shuffle(len(sample), func(i, j int) { sample[i], sample[j] = sample[j], sample[i] })
		sample = sample[:2000]
	}
	cl := cliffs(sample, now)
	n3 := 0
	for _, c := range cl {
		if math.Abs(c.Points) > 3 {
			n3++
		}
	}
	fmt.Println("cliffs", len(cl), "over3", n3, float64(n3)/float64(len(cl)), cl[:12])
	for i := range uint64(4) {
		fmt.Printf("%+v\n", coverage(sample, now, rand.New(rand.NewPCG(i, 2))))
	}
}
