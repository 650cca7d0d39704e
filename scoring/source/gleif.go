package source

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// GLEIF is the source of Legal Entity Identifiers: the legal entity of a company, and the number
// of its direct children.
type GLEIF struct{ live }

// NewGLEIF returns the source.
func NewGLEIF(c *fetch.Client) *GLEIF { return &GLEIF{newLive(c, "gleif", "wikidata", "web")} }

var _ Source = (*GLEIF)(nil)

const (
	gleifType     = "application/vnd.api+json"
	gleifNamesMax = 2  // names that are searched
	gleifRowsMax  = 20 // entities per search: the name is matched in part, so an equal one need not be the first
)

// Fetch reads the record of an entity by its identifier, or by a name that one entity has.
func (g *GLEIF) Fetch(ctx context.Context, req Request) (Result, error) {
	s := builder{source: "gleif"}
	record, via, found, err := g.find(ctx, req.Company)
	switch {
	case errors.Is(err, errManyCompanies):
		s.missing(scoring.ReasonUnresolvedIdentity, "legal_entity_registered")
		s.noPart(scoring.ReasonUnresolvedIdentity, "corporate_group_size")
		return s.result, nil
	case err != nil:
		return Result{}, err
	case !found:
		s.absent("legal_entity_registered")
		s.part("corporate_group_size", 0)
		return s.result, nil
	}
	record.observe(&s)
	record.claim(&s, via)
	children, err := fetch.Get(ctx, g.client, fetch.Request{
		Source: "gleif", Endpoint: "gleif", Path: "/api/v1/lei-records/" + record.LEI + "/direct-child-relationships",
		Query: url.Values{"page[size]": {"1"}}, Accept: gleifType,
	}, func(res *fetch.Response) (int, error) { return parseTotal(res.Body) })
	if err != nil && !fetch.IsNotFound(err) {
		return s.result, err
	}
	s.part("corporate_group_size", float64(children))
	return s.result, nil
}

// errManyCompanies means that a name does not identify one company.
var errManyCompanies = errors.New("the name does not identify one company")

// find returns the record of a company; via is key or name. Without a name it fails with
// errManyCompanies.
func (g *GLEIF) find(ctx context.Context, company Company) (record leiRecord, via string, found bool, err error) {
	if lei := company.Get(LEI); leiText.MatchString(lei) {
		records, err := fetch.Get(ctx, g.client, fetch.Request{Source: "gleif", Endpoint: "gleif", Path: "/api/v1/lei-records/" + lei,
			Accept: gleifType},
			func(res *fetch.Response) ([]leiRecord, error) { return parseRecords(res.Body) })
		if err != nil && !fetch.IsNotFound(err) {
			return leiRecord{}, "", false, err
		}
		if len(records) == 1 && records[0].LEI == lei {
			return records[0], "key", true, nil
		}
		return leiRecord{}, "", false, nil
	}
	var names []string
	for _, name := range slices.Concat(company.All(LegalName), company.All(Name)) {
		name = quotable(name)
		same := func(known string) bool { return strings.EqualFold(known, name) }
		if PlainName(name) != "" && !slices.ContainsFunc(names, same) && len(names) < gleifNamesMax {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return leiRecord{}, "", false, errManyCompanies
	}
	many := false
	for _, name := range names {
		records, err := fetch.Get(ctx, g.client, fetch.Request{
			Source: "gleif", Endpoint: "gleif", Path: "/api/v1/lei-records", Query: url.Values{"filter[entity.legalName]": {name},
				"page[size]": {strconv.Itoa(gleifRowsMax)}}, Accept: gleifType,
		}, func(res *fetch.Response) ([]leiRecord, error) { return parseRecords(res.Body) })
		if err != nil && !fetch.IsNotFound(err) {
			return leiRecord{}, "", false, err
		}
		r, equal := chooseRecord(records, name, company.Get(Country))
		if equal == 1 {
			return r, "name", true, nil
		}
		many = many || equal > 0
	}
	if many {
		return leiRecord{}, "", false, errManyCompanies
	}
	return leiRecord{}, "", false, nil
}

// chooseRecord returns the record of the company with a name among those that were found, and the
// number of records that can be meant: 1 if the choice is clear. Records in the company's country
// precede others. Within one country, those with the same legal form precede others, then active
// entities.
func chooseRecord(records []leiRecord, name, country string) (chosen leiRecord, candidates int) {
	plain := PlainName(name)
	records = slices.DeleteFunc(slices.Clone(records), func(r leiRecord) bool {
		return PlainName(r.LegalName) != plain || !r.isCompany() || r.Registration == "DUPLICATE" || r.Registration == "ANNULLED"
	})
	prefer := func(better func(leiRecord) bool) {
		if slices.ContainsFunc(records, better) {
			records = slices.DeleteFunc(records, func(r leiRecord) bool { return !better(r) })
		}
	}
	prefer(func(r leiRecord) bool { return country != "" && r.Country == country })
	if !slices.ContainsFunc(records, func(r leiRecord) bool { return r.Country != records[0].Country }) {
		prefer(func(r leiRecord) bool { return strings.EqualFold(quotable(r.LegalName), name) })
		prefer(func(r leiRecord) bool { return r.Status == "ACTIVE" })
	}
	switch {
	case len(records) == 0:
		return leiRecord{}, 0
	case len(records) == 1 && sameCompany(plain, country, records[0].Country):
		return records[0], 1
	}
	return leiRecord{}, max(2, len(records))
}

// quotable returns a name without quotes and backslashes, for use in a query.
func quotable(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune("\"\\*?~^:()[]{}", r) {
			return ' '
		}
		return r
	}, scoring.CleanName(name))
	return strings.Join(strings.Fields(name), " ")
}

// leiRecord is the record of one entity.
type leiRecord struct {
	LEI, LegalName, Country string
	// Category is GENERAL, FUND, BRANCH, SOLE_PROPRIETOR or another; Status of the entity ACTIVE or
	// INACTIVE; Registration ISSUED, LAPSED, DUPLICATE or another.
	Category, Status, Registration string
}

// soleProprietor is the category of persons who trade under their own name.
const soleProprietor = "SOLE_PROPRIETOR"

// isCompany reports whether the entity can be a company that is searched by name.
func (r leiRecord) isCompany() bool {
	return r.Category != "FUND" && r.Category != "BRANCH" && r.Category != soleProprietor
}

// parseRecords parses one record or a list of records.
func parseRecords(body io.Reader) ([]leiRecord, error) {
	type record struct {
		Attributes struct {
			LEI    string `json:"lei"`
			Entity struct {
				LegalName struct {
					Name string `json:"name"`
				} `json:"legalName"`
				Headquarters struct {
					Country string `json:"country"`
				} `json:"headquartersAddress"`
				Category string `json:"category"`
				Status   string `json:"status"`
			} `json:"entity"`
			Registration struct {
				Status string `json:"status"`
			} `json:"registration"`
		} `json:"attributes"`
	}
	var answer struct {
		Data *oneOrMany[record] `json:"data"`
	}
	if err := decodeJSON(body, &answer); err != nil {
		return nil, err
	}
	if answer.Data == nil {
		return nil, errors.New("an answer without data")
	}
	var records []leiRecord
	for _, r := range *answer.Data {
		a := r.Attributes
		if !leiText.MatchString(a.LEI) || a.Entity.LegalName.Name == "" {
			return nil, errors.New("a record without an identifier and a name")
		}
		records = append(records, leiRecord{
			LEI: a.LEI, LegalName: scoring.CleanName(a.Entity.LegalName.Name), Country: strings.ToUpper(a.Entity.Headquarters.Country),
			Category: a.Entity.Category, Status: a.Entity.Status, Registration: a.Registration.Status,
		})
	}
	return records, nil
}

// parseTotal parses the total number of entries of a list.
func parseTotal(body io.Reader) (int, error) {
	var answer struct {
		Meta *struct {
			Pagination struct {
				Total int `json:"total"`
			} `json:"pagination"`
		} `json:"meta"`
	}
	if err := decodeJSON(body, &answer); err != nil {
		return 0, err
	}
	if answer.Meta == nil || answer.Meta.Pagination.Total < 0 {
		return 0, errors.New("the answer has no total")
	}
	return answer.Meta.Pagination.Total, nil
}

func (r leiRecord) observe(s *builder) {
	if r.Status == "ACTIVE" {
		s.ok("legal_entity_registered", 1)
	} else {
		s.ok("legal_entity_registered", 0)
	}
	s.result.Defunct = r.Status == "INACTIVE"
}

// claim adds the claims of the record. The name of a sole proprietor is that of a person, and is not
// stored.
func (r leiRecord) claim(s *builder, via string) {
	why := "LEI " + r.LEI + " belongs to " + r.LegalName
	switch {
	case r.Category == soleProprietor:
		why = "LEI " + r.LEI + " belongs to a sole proprietor"
	case via == "name":
		why = "the name equals only that of LEI " + r.LEI + ", " + r.LegalName
	}
	s.claim(LEI, via, r.LEI, why)
	if s.result.Defunct {
		s.claim(Dissolved, via, "inactive", "the entity of LEI "+r.LEI+" is INACTIVE")
	}
	if r.Category != soleProprietor {
		s.claim(LegalName, via, r.LegalName, why)
		s.claim(Name, via, r.LegalName, why)
	}
	if scoring.RegionOf(r.Country) != scoring.Unknown {
		s.claim(Country, via, r.Country, "headquarters of LEI "+r.LEI)
	}
}
