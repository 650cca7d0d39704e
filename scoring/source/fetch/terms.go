package fetch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Term is what a provider asks of its callers, and how the client keeps it. The documentation prints
// the table Terms.
type Term struct {
	Source     string
	Asks, Kept string
	// check returns an error if the operator's configuration does not keep the term; nil if the
	// client keeps it by itself.
	check func(contact string) error
}

// Terms are the known terms of the providers.
var Terms = []Term{
	{Source: "rdap", Asks: "an `Accept` header with both media types at some registries", Kept: "both are sent"},
	{Source: "wikidata", Asks: "a contact in the User-Agent; at most 200 requests per minute, 3 at once; rest during a lag",
		Kept: "`--contact`; 100 per minute, 2 at once; `maxlag`", check: CheckContact},
	{Source: "wikipedia", Asks: "as `wikidata`, with which it shares the limits", Kept: "as `wikidata`", check: CheckContact},
	{Source: "sec", Asks: "an e-mail address in the User-Agent; at most 10 requests per second",
		Kept: "`--contact` needs an e-mail address; 5 per second", check: emailContact},
	{Source: "github", Asks: "a User-Agent; a token for more than 60 requests per hour", Kept: "the quota depends on the token"},
	{Source: "ct", Asks: "a token at Cert Spotter for more than a few requests", Kept: "the quota depends on the token"},
	{Source: "wayback", Asks: "at most 24 searches per minute; none after a refusal",
		Kept: "15 per minute; 10 minutes of rest after a 429"},
	{Source: "gdelt", Asks: "a User-Agent; at most one request in 5 seconds", Kept: "one in 6 seconds"},
	{Source: "tranco", Asks: "research; a citation in publications", Kept: "left to the operator"},
}

// CheckTerms returns an error for each term of the sources that a configuration does not keep. It
// also rejects a token, by its variable, that no header can have.
func CheckTerms(sources []string, contact string, tokens map[string]string) error {
	var faults []error
	for _, t := range Terms {
		if t.check != nil && slices.Contains(sources, t.Source) {
			if err := t.check(contact); err != nil {
				faults = append(faults, fmt.Errorf("source %s: %w", t.Source, err))
			}
		}
	}
	for _, e := range Endpoints {
		if token := tokens[e.Token]; slices.Contains(sources, e.Source) && strings.ContainsFunc(token, func(r rune) bool {
			return r <= ' ' || r > '~'
		}) {
			faults = append(faults, fmt.Errorf("%s has a character that no token has, such as a space or a line end", e.Token))
		}
	}
	return errors.Join(faults...)
}

func emailContact(contact string) error {
	for part := range strings.SplitSeq(contact, ";") {
		if emailPattern.MatchString(strings.TrimSpace(part)) {
			return nil
		}
	}
	return errors.New("EDGAR refuses clients without an e-mail address in the User-Agent: add one to --contact, " +
		`as in "https://example.com;ops@example.com", or leave sec out of --sources`)
}
