package source

import (
	"math"
	"slices"
	"time"

	"companyscore/scoring"
)

// observe adds the signals of audited numbers. sic is the industry code of the filer, 0 if unknown.
func (f secFacts) observe(s *builder, sic int, now time.Time) {
	currency := f.currency(now)
	books := f[currency]
	revenue, sold := newestValue(books.history(revenueFigure), now, anyValue)
	sold = sold && revenue.Value > 0
	meaningless := books.meaningless(sic, sold, now)
	give := func(signal string, value float64, ok bool) {
		switch {
		case slices.Contains(meaningless, signal):
			s.missing(scoring.ReasonNotApplicable, signal)
		case !ok || math.IsNaN(value) || math.IsInf(value, 0):
			s.missing(scoring.ReasonNotFound, signal)
		default:
			s.ok(signal, value)
		}
	}
	// An amount in another currency counts if the filer translates it.
	giveAmount := func(signal string, of figure, amount secValue, ok bool) {
		value, known := amount.Value, true
		if currency != dollar {
			value, known = at(f[dollar].history(of), amount.End)
		}
		if ok && !known {
			s.missing(scoring.ReasonNotApplicable, signal)
			return
		}
		give(signal, value, ok && value > 0)
	}

	giveAmount("revenue_latest_usd", revenueFigure, revenue, sold)
	growth, ok := books.growth(revenueFigure, revenue)
	give("revenue_growth_yoy", growth, sold && ok)
	margin := func(signal string, of []secValue) {
		value, ok := at(of, revenue.End)
		give(signal, value/revenue.Value, sold && ok)
	}
	margin("net_margin", books.history(netFigure))
	margin("operating_margin", books.history(operatingFigure))
	margin("free_cash_flow_margin", books.freeCashFlow())

	currentRatio, ok := books.currentRatio(now)
	give("current_ratio", currentRatio, ok)
	leverage, ok := books.leverage(now)
	give("liabilities_to_assets", leverage, ok)
	assets, ok := newestValue(books.history(assetsFigure), now, func(v secValue) bool { return v.Annual })
	giveAmount("total_assets_usd", assetsFigure, assets, ok)
	runway, ok := books.runway(now)
	give("cash_runway_months", runway, ok)
	books.observeProfits(s, now)
}

// meaningless returns the signals that mean nothing for a filer. Lenders, insurers and funds work with
// debt, and what they lend and invest is their operating cash flow. Their balance sheets have no
// current assets. A filer with such a code and current assets is a payment company, an exchange,
// a health plan or the like, and is judged as any other, unless the code is that of a bank.
func (b statements) meaningless(sic int, sold bool, now time.Time) []string {
	assets, _ := newestValue(b.history(assetsFigure), now, anyValue)
	_, classified := at(b.history(currentAssetsFigure), assets.End)
	_, lends := newestValue(b.history(netInterestFigure), now, anyValue)
	liquidity := []string{"free_cash_flow_margin", "current_ratio", "cash_runway_months"}
	all := append(liquidity, "liabilities_to_assets")
	between := func(from, to int) bool { return sic >= from && sic <= to }
	switch {
	case between(6000, 6089): // banks and savings institutions
		return all
	case sic == 6770 && !sold: // a shell that looks for a company to merge with
		return all
	case classified:
		return nil
	case between(6090, 6399), between(6700, 6769), sic == 6799: // lenders, brokers, asset managers, insurers, holdings and funds
		return all
	case sic == 6798 && lends: // REITs that own mortgages
		return all
	case between(6500, 6599), sic == 6798: // owners of property, which grow by purchases
		return liquidity
	}
	return nil
}

// growth returns the growth of a figure to its latest fiscal year. Both years are of one concept: of
// the largest that has them, in the first group that has one. If there is none, the year before
// is that of a concept which the latest year does not have: the filer uses another now.
func (b statements) growth(f figure, latest secValue) (float64, bool) {
	var replaced float64
	for _, group := range f {
		var value, before float64
		for _, concept := range group {
			var earlier float64
			for _, v := range b[concept] {
				if isYear(latest.End.Sub(v.End)) {
					earlier = v.Value
				}
			}
			current, has := at(b[concept], latest.End)
			switch {
			case !has:
				replaced = max(replaced, earlier)
			case earlier > 0 && current > value:
				value, before = current, earlier
			}
		}
		if before > 0 {
			return value/before - 1, true
		}
	}
	return latest.Value/replaced - 1, replaced > 0
}

// freeCashFlow returns the free cash flow of the years for which investments are known.
func (b statements) freeCashFlow() []secValue {
	investments := b.history(investmentFigure)
	var free []secValue
	for _, v := range b.history(cashFlowFigure) {
		if spent, ok := at(investments, v.End); ok {
			v.Value -= math.Abs(spent) // some filers write payments below 0
			free = append(free, v)
		}
	}
	return free
}

// currentRatio returns current assets over current liabilities, of the newest balance sheet of any
// report.
func (b statements) currentRatio(now time.Time) (float64, bool) {
	liabilities := b.history(currentLiabilitiesFigure)
	var due float64
	assets, ok := newestValue(b.history(currentAssetsFigure), now, func(v secValue) (known bool) {
		due, known = at(liabilities, v.End)
		return known
	})
	return assets.Value / due, ok && due > 0
}

// leverage returns liabilities over assets, of the newest balance sheet of any report. Without a
// total, liabilities are what is neither equity nor redeemable.
func (b statements) leverage(now time.Time) (float64, bool) {
	liabilities, equity, redeemable := b.history(liabilitiesFigure), b.history(equityFigure), b.history(redeemableFigure)
	var owed float64
	assets, ok := newestValue(b.history(assetsFigure), now, func(v secValue) (known bool) {
		if owed, known = at(liabilities, v.End); known {
			return true
		}
		own, known := at(equity, v.End)
		other, _ := at(redeemable, v.End)
		owed = v.Value - own - other
		return known
	})
	return owed / assets.Value, ok && assets.Value > 0
}

// runwayMax is the runway, in months, of a company with positive cash flow.
const runwayMax = 60

// runway returns for how many months cash and securities of the newest balance sheet last, at the
// cash flow of the last fiscal year. Unknown investments only lengthen the runway of a company
// whose operations burn cash, mostly by little. Of one whose operations earn cash they decide.
func (b statements) runway(now time.Time) (months float64, ok bool) {
	flow, ok := newestValue(b.history(cashFlowFigure), now, anyValue)
	if !ok {
		return 0, false
	}
	free, known := at(b.freeCashFlow(), flow.End)
	if !known {
		free = flow.Value
	}
	if free >= 0 {
		return runwayMax, known
	}
	cash, ok := newestValue(b.history(cashFigure), now, anyValue)
	invested, _ := at(b.history(securitiesFigure), cash.End)
	return min(max(12*(cash.Value+invested)/-free, 0), runwayMax), ok
}

// Years whose profits count, and how many of them must be known.
const (
	profitYears    = 5
	profitYearsMin = 3
)

func (b statements) observeProfits(s *builder, now time.Time) {
	years := b.history(netFigure)
	latest, ok := newestValue(years, now, anyValue)
	if !ok {
		s.missing(scoring.ReasonNotFound, "profitable_years_5")
		return
	}
	known, profitable := 0, 0
	for _, year := range years {
		if ago := latest.End.Sub(year.End); ago < 0 || ago > (profitYears-1)*366*day+7*day {
			continue
		}
		known++
		if year.Value > 0 {
			profitable++
		}
	}
	if known < profitYearsMin {
		s.missing(scoring.ReasonInsufficientHistory, "profitable_years_5")
		return
	}
	s.ok("profitable_years_5", min(profitYears, float64(profitable)*profitYears/float64(min(known, profitYears))))
}
