package scoring

import "strings"

// Unknown is the sector, or the geo scope, of a company for which it is not known.
const Unknown = "unknown"

// The geo scopes besides Unknown.
const (
	GeoGlobal           = "global"
	GeoNorthAmerica     = "north_america"
	GeoEurope           = "europe"
	GeoAsiaPacific      = "asia_pacific"
	GeoLatinAmerica     = "latin_america"
	GeoMiddleEastAfrica = "middle_east_africa"
)

// regions are ISO 3166-1 alpha-2 codes by region, as in UN M49, except that the Caucasus and
// Cyprus are in Europe and Iran is in the Middle East. EU and XK are reserved codes in common
// use. AQ is left out.
var regions = map[string]string{
	GeoNorthAmerica: "BM CA GL PM US",
	GeoEurope: "AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES EU FI FO FR GB GE GG GI GR HR HU IE " +
		"IM IS IT JE LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA XK",
	GeoAsiaPacific: "AF AS AU BD BN BT CC CK CN CX FJ FM GU HK HM ID IN JP KG KH KI KP KR KZ LA LK MH MM " +
		"MN MO MP MV MY NC NF NP NR NU NZ PF PG PH PK PN PW SB SG TH TJ TK TL TM TO TV TW UM UZ VN VU WF WS",
	GeoLatinAmerica: "AG AI AR AW BB BL BO BQ BR BS BV BZ CL CO CR CU CW DM DO EC FK GD GF GP GS GT GY HN " +
		"HT JM KN KY LC MF MQ MS MX NI PA PE PR PY SR SV SX TC TT UY VC VE VG VI",
	GeoMiddleEastAfrica: "AE AO BF BH BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW IL IO " +
		"IQ IR JO KE KM KW LB LR LS LY MA MG ML MR MU MW MZ NA NE NG OM PS QA RE RW SA SC SD SH SL SN SO " +
		"SS ST SY SZ TD TF TG TN TR TZ UG YE YT ZA ZM ZW",
}

var regionOfCountry = invert(regions)

func invert(regions map[string]string) map[string]string {
	byCountry := make(map[string]string)
	for region, countries := range regions {
		for country := range strings.FieldsSeq(countries) {
			byCountry[country] = region
		}
	}
	return byCountry
}

// RegionOf returns the geo scope of a country, an ISO 3166-1 alpha-2 code in upper case, or
// Unknown. It never returns GeoGlobal.
func RegionOf(country string) string {
	if region, ok := regionOfCountry[country]; ok {
		return region
	}
	return Unknown
}

// genericTLDs are country-code domains that are in use worldwide. They do not imply a country.
const genericTLDs = " io ai co me tv ly gg so to fm "

// headquarters returns the country code of the headquarters: found if it is a code, else that of
// the domain's country-code TLD, else "".
func headquarters(found, domain string) string {
	if found = strings.ToUpper(found); RegionOf(found) != Unknown {
		return found
	}
	tld := domain[strings.LastIndexByte(domain, '.')+1:]
	if strings.Contains(genericTLDs, " "+tld+" ") {
		return ""
	}
	if tld == "uk" {
		return "GB"
	}
	if country := strings.ToUpper(tld); RegionOf(country) != Unknown {
		return country
	}
	return ""
}

// geoScope returns GeoGlobal for a company with at least two signs of worldwide reach, else the
// region of its country.
func geoScope(country string, hiringRegions int, s signalScores) string {
	marks := s.reached(siteLanguages, 6) + s.reached(wikipediaEditions, 25) + s.reached(employeeCount, 10_000)
	if hiringRegions >= 3 {
		marks++
	}
	if marks >= 2 {
		return GeoGlobal
	}
	return RegionOf(country)
}
