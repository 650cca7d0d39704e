-- recipe: sec-statements
-- publisher: US Securities and Exchange Commission
-- documentation: https://www.sec.gov/dera/data/financial-statement-data-sets
-- licence: public domain
-- format: zip archives with tab-separated files; several quarters together give growth and profitable years
-- signals: revenue_latest_usd, revenue_growth_yoy, net_margin, operating_margin, free_cash_flow_margin, current_ratio, liabilities_to_assets, total_assets_usd, cash_runway_months, profitable_years_5
-- file sub: sub.txt [required: adsh, cik, name, sic, form, filed]
-- file num: num.txt [required: adsh, tag, version, ddate, qtrs, uom, segments, coreg, value]
--
-- The rules are those of the live source (scoring/source/sec_*.go), with one addition: a company without a fiscal year in these files is
-- judged by the longest period of its year so far. Amounts of such a period are scaled to a year.
-- A period ends on the end of a month, to which the publisher rounds. as_of is the day of the newest filing.
WITH
    toDate({day:String}) AS today,
    913 AS age_max, -- days; older numbers are not used, as factAgeMax
    60 AS runway_max, -- months; also the runway of a company with positive cash flow

    -- The concepts of each figure. The first group with a value counts, and in a group the value furthest from 0.
    concept AS
    (
        SELECT figures.1 AS figure, rank, tag
        FROM
        (
            SELECT
            [
                ('revenue', ['RevenuesNetOfInterestExpense',
                    'Revenues RevenueFromContractWithCustomerExcludingAssessedTax SalesRevenueNet
                            RegulatedAndUnregulatedOperatingRevenue Revenue RevenueFromContractsWithCustomers',
                    '', -- goods and services, see below
                    'RevenueFromContractWithCustomerIncludingAssessedTax', 'RevenueAndOperatingIncome']),
                ('sales', ['SalesRevenueGoodsNet']), ('sales', ['SalesRevenueServicesNet']),
                ('net interest', ['InterestIncomeExpenseNet']),
                ('other income', ['NoninterestIncome']),
                ('net income', ['NetIncomeLoss', 'ProfitLossAttributableToOwnersOfParent', 'ProfitLoss',
                    'NetIncomeLossAvailableToCommonStockholdersBasic']),
                ('operating income', ['OperatingIncomeLoss', 'ProfitLossFromOperatingActivities', 'OperatingProfitLoss']),
                ('cash flow', ['NetCashProvidedByUsedInOperatingActivities', 'CashFlowsFromUsedInOperatingActivities',
                    'NetCashProvidedByUsedInOperatingActivitiesContinuingOperations',
                    'CashFlowsFromUsedInOperatingActivitiesContinuingOperations']),
                ('investments', ['PaymentsToAcquirePropertyPlantAndEquipment PaymentsToAcquireProductiveAssets
                        PaymentsForCapitalImprovements PaymentsToAcquireMachineryAndEquipment
                        PaymentsToAcquireOilAndGasPropertyAndEquipment PaymentsToExploreAndDevelopOilAndGasProperties
                        PaymentsToAcquireMiningAssets PaymentsForFlightEquipment PaymentsToAcquireEquipmentOnLease
                        PurchaseOfPropertyPlantAndEquipmentClassifiedAsInvestingActivities
                        PurchaseOfPropertyPlantAndEquipmentIntangibleAssetsOtherThanGoodwillInvestmentPropertyAndOtherNoncurrentAssets
                        PurchaseOfMiningAssets',
                    'PurchaseOfOtherLongtermAssetsClassifiedAsInvestingActivities']),
                ('assets', ['Assets']),
                ('liabilities', ['Liabilities']),
                ('current assets', ['AssetsCurrent CurrentAssets']),
                ('current liabilities', ['LiabilitiesCurrent CurrentLiabilities']),
                ('equity', ['StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest', 'Equity',
                    'StockholdersEquity EquityAttributableToOwnersOfParent']),
                ('redeemable', ['TemporaryEquityCarryingAmountIncludingPortionAttributableToNoncontrollingInterests
                        TemporaryEquityCarryingAmountAttributableToParent
                        RedeemableNoncontrollingInterestEquityCarryingAmount']),
                ('cash', ['CashAndCashEquivalentsAtCarryingValue', 'CashAndCashEquivalents', 'Cash',
                    'CashCashEquivalentsRestrictedCashAndRestrictedCashEquivalents']),
                ('securities', ['ShortTermInvestments MarketableSecuritiesCurrent AvailableForSaleSecuritiesDebtSecuritiesCurrent
                        AvailableForSaleSecuritiesCurrent CurrentInvestments ShorttermDepositsNotClassifiedAsCashEquivalents'])
            ] AS all_figures
        )
        ARRAY JOIN all_figures AS figures
        ARRAY JOIN figures.2 AS concepts, arrayEnumerate(figures.2) AS rank
        ARRAY JOIN splitByWhitespace(concepts) AS tag
    ),

    filing AS
    (
        SELECT adsh, cik, name, toUInt16OrZero(sic) AS industry, toDateOrNull(filed) AS filed_on,
            match(form, '^(10-K|10-KT|20-F|40-F)(/A)?$') AS annual,
            match(form, '^(10-Q|10-QT|6-K)(/A)?$') AS interim
        FROM file({sub:String}, 'TSVRawWithNames', 'adsh String, cik String, name String, sic String, form String, filed String')
        WHERE filed_on <= today
        LIMIT 1 BY adsh
    ),

    -- One value for each company, currency, concept and period, of the newest filing. qtrs is the length of the period in quarters, 0 for
    -- a day. A year is of an annual report, a shorter period of an interim report.
    fact AS
    (
        SELECT cik, uom AS currency, figure, rank, tag, qtrs, period, argMax(number, (filed_on, adsh)) AS amount,
            max(annual) AS of_annual_report, max(filed_on) AS newest_filing
        FROM
        (
            SELECT adsh, tag, toDate32OrNull(ddate) AS period, toUInt8OrNull(qtrs) AS qtrs, uom, toFloat64OrNull(value) AS number
            FROM file({num:String}, 'TSVRawWithNames',
                'adsh String, tag String, version String, ddate String, qtrs String, uom String, segments String, coreg String,
                    value String')
            WHERE segments = '' AND coreg = '' AND value != '' AND match(version, '^(us-gaap|ifrs)') AND match(uom, '^[A-Z]{3}$')
                AND tag IN (SELECT tag FROM concept)
        ) AS num
        INNER JOIN filing USING adsh
        INNER JOIN concept USING tag
        WHERE period <= filed_on + 31 AND multiIf(qtrs = 0, annual OR interim, qtrs = 4, annual, qtrs < 4, interim, false)
            AND isFinite(number)
        GROUP BY cik, currency, figure, rank, tag, qtrs, period
    ),

    -- Two more concepts of revenue. Banks have no total: it is net interest and all other income. Until 2018 sellers could name goods and
    -- services only. earlier is the value of the same concept a year before.
    with_totals AS
    (
        SELECT cik, currency, qtrs, period, of_annual_report, newest_filing, f.1 AS figure, f.2 AS rank, f.3 AS tag, f.4 AS amount,
            last_value(toNullable(amount)) OVER (PARTITION BY cik, currency, qtrs, figure, tag ORDER BY period
                RANGE BETWEEN 400 PRECEDING AND 330 PRECEDING) AS earlier
        FROM
        (
            SELECT cik, currency, qtrs, period, max(of_annual_report) AS of_annual_report, max(newest_filing) AS newest_filing,
                groupArray((figure, rank, tag, assumeNotNull(amount))) AS facts,
                sumOrNullIf(amount, figure = 'net interest') + sumOrNullIf(amount, figure = 'other income') AS of_bank,
                sumOrNullIf(amount, figure = 'sales') AS of_goods_and_services,
                arrayConcat(facts,
                    if(of_bank IS NULL, [], [('revenue', 2, 'net interest and other income', assumeNotNull(of_bank))]),
                    if(of_goods_and_services IS NULL, [], [('revenue', 3, 'goods and services', assumeNotNull(of_goods_and_services))]))
                    AS all_facts
            FROM fact
            GROUP BY cik, currency, qtrs, period
        )
        ARRAY JOIN all_facts AS f
    ),

    -- The figures of each period. If no concept is of both years, growth compares with what another concept said a year before: the filer
    -- uses a new one.
    statement AS
    (
        SELECT cik, currency, qtrs, period, of_annual_report, newest_filing, figures, values_known, same_concept_growth,
            figures['revenue'] AS revenue,
            last_value(revenue_largest) OVER (PARTITION BY cik, currency, qtrs ORDER BY period
                RANGE BETWEEN 400 PRECEDING AND 330 PRECEDING) AS replaced,
            coalesce(same_concept_growth, if(replaced > 0, revenue / replaced - 1, NULL)) AS growth,
            figures['cash flow'] - abs(figures['investments']) AS free_cash_flow,
            coalesce(figures['liabilities'], figures['assets'] - figures['equity'] - ifNull(figures['redeemable'], 0)) AS owed,
            -- Some filers translate their amounts.
            maxIf(revenue, currency = 'USD') OVER (PARTITION BY cik, qtrs, period) AS revenue_usd,
            maxIf(figures['assets'], currency = 'USD') OVER (PARTITION BY cik, qtrs, period) AS assets_usd,
            -- Years come first, then the newest period, then the longest.
            (qtrs = 4, period, qtrs) AS preference,
            period >= today - age_max AS recent
        FROM
        (
            SELECT cik, currency, qtrs, period, any(of_annual_report) AS of_annual_report, any(newest_filing) AS newest_filing,
                CAST((groupArray(figure), groupArray(value)), 'Map(String, Nullable(Float64))') AS figures,
                sum(tags) AS values_known, anyIf(tag_growth, figure = 'revenue') AS same_concept_growth,
                maxIf(largest, figure = 'revenue') AS revenue_largest
            FROM
            (
                SELECT cik, currency, qtrs, period, figure, argMin(amount, (rank, -abs(amount))) AS value, count() AS tags,
                    any(of_annual_report) AS of_annual_report, any(newest_filing) AS newest_filing,
                    argMinOrNullIf(amount / earlier - 1, (rank, -amount), amount > 0 AND earlier > 0) AS tag_growth,
                    max(amount) AS largest
                FROM with_totals
                GROUP BY cik, currency, qtrs, period, figure
            )
            GROUP BY cik, currency, qtrs, period
        )
    ),

    -- The newest numbers of each filer by currency.
    book AS
    (
        SELECT cik, currency, max(newest_filing) AS newest_filing,
            (maxIf(period, qtrs = 4), maxIf(period, qtrs > 0), maxIf(period, qtrs = 0), sum(values_known), currency != 'USD') AS use,
            argMaxIf((revenue, revenue_usd, figures['net income'], figures['operating income'], free_cash_flow, growth, 4 / qtrs),
                preference,
                recent AND qtrs > 0 AND revenue IS NOT NULL) AS sales,
            argMaxIf((coalesce(free_cash_flow, figures['cash flow']), free_cash_flow IS NOT NULL, 4 / qtrs), preference,
                recent AND qtrs > 0 AND figures['cash flow'] IS NOT NULL) AS flow,
            argMaxIf(figures['cash'] + ifNull(figures['securities'], 0), period,
                recent AND qtrs = 0 AND figures['cash'] IS NOT NULL) AS cash,
            argMaxIf(figures['current assets'] / figures['current liabilities'], period,
                recent AND qtrs = 0 AND figures['current assets'] IS NOT NULL AND figures['current liabilities'] > 0) AS current_ratio,
            argMaxIf(owed / figures['assets'], period, recent AND qtrs = 0 AND owed IS NOT NULL AND figures['assets'] > 0) AS leverage,
            argMaxIf((figures['assets'], assets_usd), (of_annual_report, period),
                recent AND qtrs = 0 AND figures['assets'] IS NOT NULL) AS assets,
            argMaxIf(figures['current assets'] IS NOT NULL, period, recent AND qtrs = 0 AND figures['assets'] IS NOT NULL) AS classified,
            countIf(recent AND qtrs > 0 AND figures['net interest'] IS NOT NULL) > 0 AS lends,
            groupArrayIf((period, figures['net income']), qtrs = 4 AND figures['net income'] IS NOT NULL) AS profits,
            arrayMax(arrayMap(p -> p.1, profits)) AS latest_profit,
            arrayFilter(p -> p.1 >= latest_profit - (4 * 366 + 7), profits) AS five_years
        FROM statement
        GROUP BY cik, currency
    ),

    -- The currency in which a filer reports has the newest fiscal year, then the newest day, then the most values. Translations for the
    -- convenience of readers are into dollars, so another currency with as many values comes before the dollar.
    filer AS
    (
        SELECT f.cik AS cik, f.name AS name, f.sic AS sic, b.newest_filing AS as_of, b.currency AS currency,
            b.sales.1 AS revenue, ifNull(revenue > 0, false) AS sold, b.sales.7 AS per_year,
            -- Signals that mean nothing for a filer, as meaningless() of the live source.
            multiIf(
                sic BETWEEN 6000 AND 6089, 'all', -- banks and savings institutions
                sic = 6770 AND NOT sold, 'all', -- a shell that looks for a company to merge with
                b.classified, '',
                sic = 0 AND b.lends, 'all', -- an archive of one day has no codes
                sic BETWEEN 6090 AND 6399 OR sic BETWEEN 6700 AND 6769 OR sic = 6799, 'all', -- lenders, brokers, insurers, holdings, funds
                sic = 6798 AND b.lends, 'all', -- REITs that own mortgages
                sic BETWEEN 6500 AND 6599 OR sic = 6798, 'liquidity', -- owners of property, which grow by purchases
                '') AS meaningless,
            if(currency = 'USD', revenue, b.sales.2) * per_year AS revenue_usd,
            if(currency = 'USD', b.assets.1, b.assets.2) AS assets_usd,
            b.sales.3 / revenue AS net_margin,
            b.sales.4 / revenue AS operating_margin,
            b.sales.5 / revenue AS free_cash_flow_margin,
            b.sales.6 AS growth,
            b.current_ratio AS current_ratio,
            b.leverage AS leverage,
            -- Unknown investments only lengthen the runway of a company whose operations burn cash. Of one whose operations earn cash they
            -- decide.
            b.flow.1 * b.flow.3 AS yearly_flow,
            multiIf(yearly_flow < 0, least(greatest(12 * b.cash / -yearly_flow, 0), runway_max), b.flow.2, runway_max, NULL) AS runway,
            length(b.five_years) AS years,
            b.latest_profit >= today - age_max AS years_recent,
            arrayCount(p -> p.2 > 0, b.five_years) AS profitable
        FROM (SELECT cik, argMax(name, filed_on) AS name, argMax(industry, filed_on) AS sic FROM filing GROUP BY cik) AS f
        LEFT JOIN (SELECT * FROM book ORDER BY use DESC LIMIT 1 BY cik) AS b USING cik
    ),

    known AS
    (
        SELECT value AS cik, domain
        FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
        WHERE kind = 'cik'
    ),

    -- One row per signal and filer, without values that no import accepts.
    result AS
    (
        SELECT
            domain, cik, name, sic, as_of, assets_usd,
            if(revenue_usd > 0 AND revenue_usd <= 1e15, revenue_usd, NULL) AS revenue_usd,
            if(assets_usd > 0 AND assets_usd <= 1e15, assets_usd, NULL) AS total_assets_usd,
            arrayMap(v -> if(v BETWEEN -1e6 AND 1e6, v, NULL), [growth, net_margin, operating_margin,
                if(meaningless = '', free_cash_flow_margin, NULL)]) AS fractions,
            arrayMap(v -> if(v BETWEEN 0 AND 1e6, v, NULL), [if(meaningless = '', current_ratio, NULL),
                if(meaningless = 'all', NULL, leverage)]) AS ratios,
            if(meaningless = '', runway, NULL) AS runway,
            -- A year without profit and loss is not known; of three or four known years the share counts.
            if(years >= 3 AND years_recent, least(5, profitable * 5 / least(years, 5)), NULL) AS profitable_years,
            multiIf(
                coalesce(revenue_usd, total_assets_usd, fractions[1], fractions[2], fractions[3], ratios[1], ratios[2], runway,
                    profitable_years) IS NULL, 'no figures',
                domain = '', 'no domain for CIK',
                row_number() OVER (PARTITION BY domain ORDER BY assets_usd DESC, cik) > 1, 'another filer of the domain is larger',
                '') AS unmatched
        FROM filer LEFT JOIN known USING cik
    )
SELECT
    if(unmatched = '', domain, '') AS domain,
    toString(as_of) AS as_of,
    cik,
    if(sic BETWEEN 100 AND 9999, sic, NULL) AS sic,
    revenue_usd,
    total_assets_usd,
    fractions[1] AS `signal:revenue_growth_yoy`,
    fractions[2] AS `signal:net_margin`,
    fractions[3] AS `signal:operating_margin`,
    fractions[4] AS `signal:free_cash_flow_margin`,
    ratios[1] AS `signal:current_ratio`,
    ratios[2] AS `signal:liabilities_to_assets`,
    runway AS `signal:cash_runway_months`,
    profitable_years AS `signal:profitable_years_5`,
    unmatched,
    concat(name, ', CIK ', cik) AS subject
FROM result
ORDER BY domain, subject
SETTINGS input_format_tsv_crlf_end_of_line = 1 -- some archives have the line ends of Windows
