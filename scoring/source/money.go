package source

// usdPer is the value of one unit of a currency in US dollars, by year from 2015 on, as the
// average of the year. Years after the table use its last rate, years before it the first.
//
// The rates are published annual averages, entered by hand with three or four digits; those of
// the last year are an estimate. They are not from a provider of rates and must not be used for
// accounting. They suffice for scores, which use the logarithm of an amount: an error of 3 %
// changes a score by at most 0.3.
var usdPer = map[string][]float64{
	"USD": {1},
	"EUR": {1.110, 1.107, 1.130, 1.181, 1.120, 1.142, 1.183, 1.053, 1.081, 1.082, 1.130},
	"GBP": {1.529, 1.356, 1.289, 1.335, 1.277, 1.284, 1.376, 1.237, 1.244, 1.278, 1.318},
	"JPY": {1 / 121.0, 1 / 108.8, 1 / 112.2, 1 / 110.4, 1 / 109.0, 1 / 106.8, 1 / 109.8, 1 / 131.5, 1 / 140.5, 1 / 151.4, 1 / 149.6},
	"CNY": {1 / 6.228, 1 / 6.644, 1 / 6.759, 1 / 6.616, 1 / 6.908, 1 / 6.900, 1 / 6.449, 1 / 6.737, 1 / 7.084, 1 / 7.197, 1 / 7.190},
}

// usdFirst is the year of the first rate.
const usdFirst = 2015

// inUSD converts an amount of a year to US dollars, false for a currency without rates.
func inUSD(amount float64, currency string, year int) (float64, bool) {
	rates := usdPer[currency]
	if rates == nil {
		return 0, false
	}
	return amount * rates[min(max(year-usdFirst, 0), len(rates)-1)], true
}
