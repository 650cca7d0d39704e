package source

import "strings"

// figure is a number of financial statements: groups of its concepts in the XBRL taxonomies us-gaap
// and ifrs-full, the preferred group first. Concepts of one name mean the same in both. A group
// has a whole and its parts, or several names of the same, so its largest value counts.
type figure [][]string

// bankRevenue is a concept that no taxonomy has: net interest income and all other income.
const bankRevenue = "own:NetInterestAndOtherIncome"

// Figures of a fiscal year.
var (
	// The Revenues of banks and brokers can be before interest expense, so their own total comes
	// first. Revenue from contracts is a part of the whole for insurers, lessors and lenders.
	// Excise taxes are no revenue, so the concept with them comes late.
	revenueFigure = figureOf("RevenuesNetOfInterestExpense",
		"Revenues RevenueFromContractWithCustomerExcludingAssessedTax SalesRevenueNet RegulatedAndUnregulatedOperatingRevenue "+
			"Revenue RevenueFromContractsWithCustomers "+bankRevenue,
		"RevenueFromContractWithCustomerIncludingAssessedTax", "RevenueAndOperatingIncome")
	netInterestFigure = figureOf("InterestIncomeExpenseNet")
	otherIncomeFigure = figureOf("NoninterestIncome")
	netFigure         = figureOf("NetIncomeLoss", "ProfitLossAttributableToOwnersOfParent", "ProfitLoss",
		"NetIncomeLossAvailableToCommonStockholdersBasic")
	operatingFigure = figureOf("OperatingIncomeLoss", "ProfitLossFromOperatingActivities", "OperatingProfitLoss")
	cashFlowFigure  = figureOf("NetCashProvidedByUsedInOperatingActivities", "CashFlowsFromUsedInOperatingActivities",
		"NetCashProvidedByUsedInOperatingActivitiesContinuingOperations",
		"CashFlowsFromUsedInOperatingActivitiesContinuingOperations")
	investmentFigure = figureOf("PaymentsToAcquirePropertyPlantAndEquipment PaymentsToAcquireProductiveAssets "+
		"PaymentsForCapitalImprovements PaymentsToAcquireMachineryAndEquipment PaymentsToAcquireOilAndGasPropertyAndEquipment "+
		"PaymentsToExploreAndDevelopOilAndGasProperties PaymentsToAcquireMiningAssets PaymentsForFlightEquipment "+
		"PaymentsToAcquireEquipmentOnLease PurchaseOfPropertyPlantAndEquipmentClassifiedAsInvestingActivities "+
		"PurchaseOfPropertyPlantAndEquipmentIntangibleAssetsOtherThanGoodwillInvestmentPropertyAndOtherNoncurrentAssets "+
		"PurchaseOfMiningAssets",
		"PurchaseOfOtherLongtermAssetsClassifiedAsInvestingActivities")
)

// Figures of a day.
var (
	assetsFigure             = figureOf("Assets")
	liabilitiesFigure        = figureOf("Liabilities")
	currentAssetsFigure      = figureOf("AssetsCurrent CurrentAssets")
	currentLiabilitiesFigure = figureOf("LiabilitiesCurrent CurrentLiabilities")
	// Minority interests are no debt, so equity with them comes first.
	equityFigure = figureOf("StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest", "Equity",
		"StockholdersEquity EquityAttributableToOwnersOfParent")
	// What holders can return to the company is neither debt nor equity.
	redeemableFigure = figureOf("TemporaryEquityCarryingAmountIncludingPortionAttributableToNoncontrollingInterests " +
		"TemporaryEquityCarryingAmountAttributableToParent RedeemableNoncontrollingInterestEquityCarryingAmount")
	cashFigure = figureOf("CashAndCashEquivalentsAtCarryingValue", "CashAndCashEquivalents", "Cash",
		"CashCashEquivalentsRestrictedCashAndRestrictedCashEquivalents")
	securitiesFigure = figureOf("ShortTermInvestments MarketableSecuritiesCurrent AvailableForSaleSecuritiesDebtSecuritiesCurrent " +
		"AvailableForSaleSecuritiesCurrent CurrentInvestments ShorttermDepositsNotClassifiedAsCashEquivalents")
)

// conceptsRead maps the concepts that are read to whether they cover a year, not a day.
var conceptsRead = func() map[string]bool {
	read := map[string]bool{}
	add := func(year bool, figures ...figure) {
		for _, f := range figures {
			for _, group := range f {
				for _, concept := range group {
					read[concept] = year
				}
			}
		}
	}
	add(true, revenueFigure, netInterestFigure, otherIncomeFigure, netFigure, operatingFigure, cashFlowFigure, investmentFigure)
	add(false, assetsFigure, liabilitiesFigure, currentAssetsFigure, currentLiabilitiesFigure, equityFigure, redeemableFigure,
		cashFigure, securitiesFigure)
	return read
}()

// figureOf returns the figure of groups of concepts, which spaces separate.
func figureOf(groups ...string) figure {
	f := make(figure, len(groups))
	for i, group := range groups {
		f[i] = strings.Fields(group)
	}
	return f
}
