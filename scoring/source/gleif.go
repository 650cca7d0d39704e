package source

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
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
	gleifNamesMax = 2 // names that are searched
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
				"page[size]": {"5"}}, Accept: gleifType,
		}, func(res *fetch.Response) ([]leiRecord, error) { return parseRecords(res.Body) })
		if err != nil && !fetch.IsNotFound(err) {
			return leiRecord{}, "", false, err
		}
		plain := PlainName(name)
		var equal []leiRecord
		for _, r := range records {
			if PlainName(r.LegalName) == plain && r.Category != "FUND" && r.Category != "BRANCH" {
				equal = append(equal, r)
			}
		}
		if len(equal) == 1 && sameCompany(plain, company.Get(Country), equal[0].Country) {
			return equal[0], "name", true, nil
		}
		many = many || len(equal) > 0
	}
	if many {
		return leiRecord{}, "", false, errManyCompanies
	}
	return leiRecord{}, "", false, nil
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
	// Category is GENERAL, FUND, BRANCH or another; Status of the entity ACTIVE or INACTIVE;
	// Registration ISSUED, LAPSED or another.
	Category, Status, Registration string
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

func (r leiRecord) claim(s *builder, via string) {
	why := "LEI " + r.LEI + " belongs to " + r.LegalName
	if via == "name" {
		why = "the name equals only that of LEI " + r.LEI + ", " + r.LegalName
	}
	s.claim(LEI, via, r.LEI, why)
	if s.result.Defunct {
		s.claim(Dissolved, via, "inactive", "the entity of LEI "+r.LEI+" is INACTIVE")
	}
	s.claim(LegalName, via, r.LegalName, why)
	s.claim(Name, via, r.LegalName, why)
	if scoring.RegionOf(r.Country) != scoring.Unknown {
		s.claim(Country, via, r.Country, "headquarters of LEI "+r.LEI)
	}
}
