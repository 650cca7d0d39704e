package scoring

import (
	"slices"
	"strings"
	"testing"
)

func TestSectorOf(t *testing.T) {
	t.Parallel()
	f := func(name, want string, id Identity) {
		t.Helper()
		if got := SectorOf(id); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	industries := func(labels ...string) Identity { return Identity{Industries: labels} }
	f("nothing known", Unknown, Identity{})
	f("a label", "software", industries("Enterprise Software"))
	f("labels in their order", "education", industries("widgets", "Education", "software"))
	f("the longest phrase of one label", "software", industries("payment software"))
	f("the upper row of two equally long phrases", "ai_data", industries("analytics education"))
	f("a label before the code", "education", Identity{Industries: []string{"Education"}, SIC: 7372})
	f("the code when no label matches", "software", Identity{Industries: []string{"widgets"}, SIC: 7372})
	f("the code before the site", "software", Identity{SIC: 7372, Site: SiteText{Title: "bank"}})
	f("whole words only", Unknown, industries("bankers", "chips", "apiary", "1api", "ärztehealthß"))
	f("words beside punctuation", "semiconductors_hardware", industries("Chip/wafer"))
	f("a keyword after a longer word that contains it", "semiconductors_hardware", industries("chipset chip"))

	site := func(s SiteText) Identity { return Identity{Site: s} }
	f("the title alone", "financial_services", site(SiteText{Title: "Your Bank"}))
	f("a description alone", Unknown, site(SiteText{Description: "a bank"}))
	f("links alone", Unknown, site(SiteText{Links: "bank insurance"}))
	f("a description and a link", "financial_services", site(SiteText{Description: "a bank", Links: "bank"}))
	f("headings and structured data", "financial_services", site(SiteText{Headings: "bank", Structured: "bank"}))
	f("a word counts once in a part", Unknown, site(SiteText{Description: "bank bank bank"}))
	f("two words of one row", "financial_services", site(SiteText{Description: "bank and insurance"}))
	f("ties go to the upper row", "software", site(SiteText{Title: "software for your bank"}))
	f("most points win", "financial_services", site(SiteText{Title: "software for your bank", Links: "insurance"}))
}

func TestSectorOfSIC(t *testing.T) {
	t.Parallel()
	for sic, want := range map[int]string{
		0: Unknown, 99: Unknown, 100: "agriculture_materials", 1200: "energy_utilities", 1311: "energy_utilities",
		1400: "agriculture_materials", 1531: "real_estate_construction", 2000: "consumer_goods",
		2711: "media_entertainment", 2833: "biotech_pharma", 2836: "biotech_pharma", 2840: "consumer_goods",
		2911: "energy_utilities", 3571: "semiconductors_hardware", 3674: "semiconductors_hardware",
		3711: "industrials", 3841: "healthcare", 4213: "transport_logistics", 4813: "telecom",
		4833: "media_entertainment", 4911: "energy_utilities", 5812: "travel_hospitality", 5912: "ecommerce_retail",
		6022: "financial_services", 6099: "fintech", 6141: "fintech", 6324: "healthcare", 6500: "real_estate_construction",
		7011: "travel_hospitality", 7372: "software", 7375: "professional_services", 7812: "media_entertainment",
		8062: "healthcare", 8221: "education", 8399: "public_nonprofit", 8731: "biotech_pharma",
		8742: "professional_services", 9999: "public_nonprofit", 10_000: Unknown,
	} {
		if got := SectorOf(Identity{SIC: sic}); got != want {
			t.Errorf("SIC %d is %s, want %s", sic, got, want)
		}
	}
}

func TestSectorTable(t *testing.T) {
	t.Parallel()
	if len(sectors) != 21 {
		t.Errorf("%d sectors, want 21", len(sectors))
	}
	names := map[string]bool{}
	for _, s := range sectors {
		if names[s.name] {
			t.Errorf("%s is given twice", s.name)
		}
		names[s.name] = true
		if articles := SectorArticles(s.name); len(articles) != 3 {
			t.Errorf("%s has the articles %v, want three", s.name, articles)
		}
		for _, keyword := range s.keywords {
			if keyword != strings.ToLower(keyword) || keyword[0] < 'a' || keyword[0] > 'z' {
				t.Errorf("keyword %q of %s cannot be found", keyword, s.name)
			}
		}
		for _, r := range s.sic {
			if r[0] > r[1] || r[0] < 100 {
				t.Errorf("%s has the range %v", s.name, r)
			}
		}
	}
	if SectorArticles(Unknown) != nil {
		t.Error("an unknown sector has articles")
	}
}

// Labels of lists of companies, with the sectors that a reader expects.
func TestSectorOfLabel(t *testing.T) {
	t.Parallel()
	for sector, labels := range map[string][]string{
		"industrials": {
			"Construction and Farm Machinery", "Motor Vehicles & Parts", "Automobiles", "Auto Components", "Aerospace & Defense",
			"Machinery",
			"Industrial Machinery", "Electrical Equipment", "Industrial Conglomerates", "Electronics, Electrical Equip.",
		},
		"financial_services": {
			"Insurance: Life, Health (Stock)", "Insurance: Life, Health (Mutual)", "Insurance: Property and Casualty (Stock)",
			"Commercial Banks",
			"Thrifts & Mortgage Finance", "Capital Markets", "Consumer Finance", "Diversified Financials", "Securities",
		},
		"healthcare": {"Health Care: Insurance and Managed Care", "Health Care: Medical Facilities",
			"Health Care Providers & Services", "Wholesalers: Health Care"},
		"biotech_pharma": {"Biotechnology", "Pharmaceuticals, Biotechnology & Life Sciences", "Life Sciences Tools & Services"},
		"ecommerce_retail": {"Food & Drug Stores", "General Merchandisers", "Specialty Retailers: Apparel",
			"Internet & Direct Marketing Retail", "Food & Staples Retailing", "Distributors"},
		"travel_hospitality": {"Hotels, Restaurants & Leisure", "Hotels, Casinos, Resorts", "Food Services"},
		"energy_utilities": {"Oil, Gas & Consumable Fuels", "Mining, Crude-Oil Production", "Petroleum Refining", "Multi-Utilities",
			"Waste Management"},
		"semiconductors_hardware": {
			"Semiconductors & Semiconductor Equipment", "Technology Hardware, Storage & Peripherals", "Communications Equipment",
			"Computers, Office Equipment",
		},
		"real_estate_construction": {"Homebuilders", "Engineering & Construction", "Equity Real Estate Investment Trusts (REITs)",
			"Building Products"},
		"software":       {"IT Services", "Application Software", "Information Technology Services"},
		"fintech":        {"Financial Data Services"},
		"consumer_goods": {"Textiles, Apparel & Luxury Goods", "Household Durables", "Food Products"},
	} {
		for _, label := range labels {
			if got := SectorOf(Identity{Industries: []string{label}}); got != sector {
				t.Errorf("%s is %s, want %s", label, got, sector)
			}
		}
	}
}

// gics are the sectors, groups and industries of the Global Industry Classification Standard, in the
// versions since 2018.
const gics = `
Energy; Materials; Industrials; Consumer Discretionary; Consumer Staples; Health Care; Financials; Information Technology;
Communication Services; Utilities; Real Estate; Capital Goods; Commercial & Professional Services; Transportation;
Automobiles & Components; Consumer Durables & Apparel; Consumer Services; Retailing; Food & Staples Retailing;
Consumer Discretionary Distribution & Retail; Consumer Staples Distribution & Retail; Food, Beverage & Tobacco;
Household & Personal Products; Health Care Equipment & Services; Pharmaceuticals, Biotechnology & Life Sciences; Banks;
Diversified Financials; Financial Services; Insurance; Software & Services; Technology Hardware & Equipment;
Semiconductors & Semiconductor Equipment; Telecommunication Services; Media & Entertainment; Equity Real Estate Investment Trusts (REITs);
Real Estate Management & Development; Energy Equipment & Services; Oil, Gas & Consumable Fuels; Chemicals; Construction Materials;
Containers & Packaging; Metals & Mining; Paper & Forest Products; Aerospace & Defense; Building Products; Construction & Engineering;
Electrical Equipment; Industrial Conglomerates; Machinery; Trading Companies & Distributors; Commercial Services & Supplies;
Professional Services; Air Freight & Logistics; Airlines; Passenger Airlines; Marine; Marine Transportation; Road & Rail; Ground Transportation;
Transportation Infrastructure; Auto Components; Automobile Components; Automobiles; Household Durables; Leisure Products;
Textiles, Apparel & Luxury Goods; Hotels, Restaurants & Leisure; Diversified Consumer Services; Distributors;
Internet & Direct Marketing Retail; Multiline Retail; Broadline Retail; Specialty Retail; Consumer Staples Distribution & Retail;
Beverages; Food Products; Tobacco; Household Products; Personal Products; Personal Care Products; Health Care Equipment & Supplies;
Health Care Providers & Services; Health Care Technology; Biotechnology; Pharmaceuticals; Life Sciences Tools & Services;
Thrifts & Mortgage Finance; Diversified Financial Services; Consumer Finance; Capital Markets; Mortgage Real Estate Investment Trusts (REITs);
IT Services; Software; Communications Equipment; Technology Hardware, Storage & Peripherals;
Electronic Equipment, Instruments & Components; Diversified Telecommunication Services; Wireless Telecommunication Services; Media;
Entertainment; Interactive Media & Services; Electric Utilities; Gas Utilities; Multi-Utilities; Water Utilities;
Independent Power and Renewable Electricity Producers; Diversified REITs; Industrial REITs; Hotel & Resort REITs; Office REITs;
Health Care REITs; Residential REITs; Retail REITs; Specialized REITs`

func TestEveryGICSLabelHasASector(t *testing.T) {
	t.Parallel()
	for label := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(gics), "\n", " "), ";") {
		if label = strings.TrimSpace(label); SectorOf(Identity{Industries: []string{label}}) == Unknown {
			t.Errorf("%q has no sector", label)
		}
	}
}

// isoCountries are all codes of ISO 3166-1 alpha-2.
const isoCountries = `
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO
FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE
JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO
MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW
PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM
TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW`

func TestRegionOf(t *testing.T) {
	t.Parallel()
	codes := strings.Fields(isoCountries)
	if len(codes) != 249 {
		t.Fatalf("%d codes, want 249", len(codes))
	}
	for _, code := range codes {
		if (RegionOf(code) == Unknown) != (code == "AQ") {
			t.Errorf("%s lies in %s", code, RegionOf(code))
		}
	}
	listed := 0
	for region, text := range regions {
		for _, code := range strings.Fields(text) {
			listed++
			if got := RegionOf(code); got != region {
				t.Errorf("%s stands in %s and in %s", code, got, region)
			}
			if !slices.Contains(codes, code) && code != "EU" && code != "XK" {
				t.Errorf("%s is no country", code)
			}
		}
	}
	if want := len(codes) - 1 + 2; listed != want {
		t.Errorf("%d codes have a region, want %d", listed, want)
	}

	for code, want := range map[string]string{
		"US": GeoNorthAmerica, "MX": GeoLatinAmerica, "DE": GeoEurope, "GB": GeoEurope, "IN": GeoAsiaPacific,
		"AU": GeoAsiaPacific, "BR": GeoLatinAmerica, "IL": GeoMiddleEastAfrica, "TR": GeoMiddleEastAfrica,
		"ZA": GeoMiddleEastAfrica, "": Unknown, "us": Unknown, "ZZ": Unknown,
	} {
		if got := RegionOf(code); got != want {
			t.Errorf("RegionOf(%q) = %s, want %s", code, got, want)
		}
	}
}

func TestHeadquarters(t *testing.T) {
	t.Parallel()
	f := func(found, domain, want string) {
		t.Helper()
		if got := headquarters(found, domain); got != want {
			t.Errorf("headquarters(%q, %q) = %q, want %q", found, domain, got, want)
		}
	}
	f("US", "example.de", "US")
	f("us", "example.de", "US")
	f("ZZ", "example.de", "DE")
	f("Germany", "example.com", "")
	f("", "example.de", "DE")
	f("", "shop.example.co.uk", "GB")
	f("", "example.eu", "EU")
	f("", "example.com", "")
	f("", "localhost", "")
	for tld := range strings.FieldsSeq(genericTLDs) {
		f("", "example."+tld, "")
	}
	f("IT", "example.io", "IT")
}

func TestGeoScope(t *testing.T) {
	t.Parallel()
	f := func(name, country string, hiringRegions int, raws map[int]float64, want string) {
		t.Helper()
		if got := geoScope(country, hiringRegions, known(raws)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	f("nothing known", "", 0, nil, Unknown)
	f("a country", "JP", 0, nil, GeoAsiaPacific)
	f("one mark", "JP", 0, map[int]float64{employeeCount: 10_000}, GeoAsiaPacific)
	f("two marks", "JP", 0, map[int]float64{employeeCount: 10_000, siteLanguages: 6}, GeoGlobal)
	f("two marks, just missed", "JP", 2, map[int]float64{employeeCount: 9999, siteLanguages: 5, wikipediaEditions: 24}, GeoAsiaPacific)
	f("hiring is a mark", "JP", 3, map[int]float64{wikipediaEditions: 25}, GeoGlobal)
	f("no country is needed", "", 3, map[int]float64{siteLanguages: 6}, GeoGlobal)
}

func TestCompanyName(t *testing.T) {
	t.Parallel()
	f := func(found, domain, want string) {
		t.Helper()
		if got := companyName(found, domain); got != want {
			t.Errorf("companyName(%q, %q) = %q, want %q", found, domain, got, want)
		}
	}
	f("Acme, Inc.", "acme.com", "Acme, Inc.")
	f(" \u202e\t ", "acme.com", "Acme")
	f("", "acme.com", "Acme")
	f("", "shop.acme.com", "Acme")
	f("", "shop.acme.co.uk", "Acme")
	f("", "acme.co.uk", "Acme")
	f("", "co.uk", "Co")
	f("", "acme.com.br", "Acme")
	f("", "co.com", "Co")
	f("", "acme-works.de", "Acme-works")
	f("", "3m.com", "3m")
	f("", "localhost", "Localhost")
	f("", "éclair.fr", "Éclair")
	f("", "xn--bcher-kva.ch", "xn--bcher-kva.ch")
	f("", ".", ".")
}

func TestCleanName(t *testing.T) {
	t.Parallel()
	f := func(in, want string) {
		t.Helper()
		if got := CleanName(in); got != want {
			t.Errorf("CleanName(%q) = %q, want %q", in, got, want)
		}
	}
	f("", "")
	f("  Acme \t\n Works  ", "Acme Works")
	f("Smith &amp; Sons", "Smith & Sons")
	f("Acme&nbsp;Works", "Acme Works")
	f("A\x00c\x1bme\u0085Works", "Acme Works")
	f("\u202eemcA\u202c \u2066Works\u2069\ufeff", "emcA Works")
	f("a \u200b b", "a b")
	f("می\u200cخواهم", "می\u200cخواهم")
	f("Ac\xffme", "Acme")
	f(strings.Repeat("ä", 121), strings.Repeat("ä", 120))
	f(strings.Repeat("ä", 119)+" b", strings.Repeat("ä", 119))
}
