package resolve

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Company is what is known about one company.
type Company struct {
	Domain string
	// Name is the name to show.
	Name string
	// Names are all its names. Tickers are written EXCHANGE:TICKER, with an empty exchange if it is not known.
	Names, Tickers, CIKs, LEIs, ISINs []string
}

// Candidate is a domain that can be meant.
type Candidate struct {
	Domain      string `json:"domain"`
	CompanyName string `json:"company_name"`
	// Likelihood that the domain is meant, 0 to 1.
	Likelihood float64 `json:"likelihood"`
}

// Answer is the answer to one question.
type Answer struct {
	Input string `json:"input"`
	Kind  Kind   `json:"kind"`
	// Candidate is the most likely one; its zero value means that nothing is known.
	Candidate
	// Ambiguous is set if another domain is as likely, or nearly: at least half as likely.
	Ambiguous bool `json:"ambiguous"`
	// Others are up to five further domains, the most likely first.
	Others []Candidate `json:"others"`
}

// othersMax is the number of further domains in an answer.
const othersMax = 5

// candidatesMax bounds the candidates that are kept for a question, so that a name that thousands have takes no memory.
const candidatesMax = 16

// Likelihoods. Those of names were counted for filers with the SEC, whose names are from another list than those of the companies:
// every one of 1,606 equal names that only one domain had was right. That is better than other lists will be, so the likelihoods are
// lower. Of 372 filers with a similar name only, 20 were right, 66 wrong, and 286 had no known domain.
// TestLikelihoodsOfNames counts a sample again.
const (
	likelyExact    = 0.99 // an identifier: identifiers are joined by name now and then, so never 1
	likelyWords    = 0.95 // an equal name of several words
	likelyWord     = 0.9  // an equal name of one word
	likelyJoined   = 0.9  // a name that differs in spaces only
	likelySimilar  = 0.4  // the most that a similar name has, times the share of words in common
	leastSimilar   = 0.5  // share of words in common below which names are not similar
	ambiguousShare = 0.5  // of the likelihood of the best
)

// Matcher finds companies for questions. Its memory grows with the questions and not with the companies: at most 16 candidates each, about
// 240 MB for 100,000 questions that all have as many. It is not safe for concurrent use.
type Matcher struct {
	asked []question
	// exact are questions by kind and value; names by the first word of their plain name; joined by the plain name without spaces.
	exact  map[Kind]map[string][]int
	names  map[string][]int
	joined map[string][]int
}

type question struct {
	Query
	plain string   // the plain name
	words []string // of it, sorted, without repetition
	// byKey are the candidates with the identifier; byName those with the name, also of a guessed ticker or CIK.
	byKey, byName []Candidate
}

// NewMatcher returns a matcher for questions.
func NewMatcher(queries []Query) *Matcher {
	m := &Matcher{asked: make([]question, len(queries)), exact: make(map[Kind]map[string][]int), names: make(map[string][]int),
		joined: make(map[string][]int)}
	for i, q := range queries {
		asked := question{Query: q}
		if q.Kind != Name {
			if m.exact[q.Kind] == nil {
				m.exact[q.Kind] = make(map[string][]int)
			}
			m.exact[q.Kind][q.value] = append(m.exact[q.Kind][q.value], i)
		}
		if q.Kind == Name || q.guessed && (q.Kind == Ticker && q.exchange == "" || q.Kind == CIK) {
			if asked.plain = plainName(q.Input); asked.plain != "" {
				first, _, _ := strings.Cut(asked.plain, " ")
				asked.words = wordsOf(asked.plain)
				m.names[first] = append(m.names[first], i)
				key := strings.ReplaceAll(asked.plain, " ", "")
				m.joined[key] = append(m.joined[key], i)
			}
		}
		m.asked[i] = asked
	}
	return m
}

// Add compares the questions with a company. The order of companies does not change answers; a domain may be added several times.
func (m *Matcher) Add(c Company) {
	for kind, values := range map[Kind][]string{CIK: c.CIKs, LEI: c.LEIs, ISIN: c.ISINs} {
		for _, value := range values {
			for _, i := range m.exact[kind][value] {
				keep(&m.asked[i].byKey, Candidate{c.Domain, c.Name, likelyExact})
			}
		}
	}
	for _, listed := range c.Tickers {
		exchange, ticker, _ := strings.Cut(listed, ":")
		for _, i := range m.exact[Ticker][plainTicker(ticker)] {
			likelihood := likelyExact
			switch asked := m.asked[i].exchange; {
			case asked == "" || plainExchange(asked) == plainExchange(exchange):
			case exchange == "":
				likelihood *= 0.5 // it may be on another exchange
			default:
				continue
			}
			keep(&m.asked[i].byKey, Candidate{c.Domain, c.Name, likelihood})
		}
	}
	for _, name := range c.Names {
		m.addName(c.Domain, name)
	}
}

func (m *Matcher) addName(domain, name string) {
	plain := plainName(name)
	first, _, _ := strings.Cut(plain, " ")
	near := m.names[first]
	for _, i := range m.joined[strings.ReplaceAll(plain, " ", "")] {
		keep(&m.asked[i].byName, Candidate{domain, name, likelihoodOf(m.asked[i].plain, plain, 0)})
	}
	if len(near) == 0 {
		return
	}
	words := wordsOf(plain)
	for _, i := range near {
		if share := common(m.asked[i].words, words); share >= leastSimilar && m.asked[i].plain != plain {
			keep(&m.asked[i].byName, Candidate{domain, name, likelihoodOf(m.asked[i].plain, plain, share)})
		}
	}
}

// likelihoodOf returns the likelihood that two plain names are of one company: they are equal, or differ in spaces, or share words.
func likelihoodOf(asked, known string, share float64) float64 {
	switch {
	case asked == known && strings.Contains(asked, " "):
		return likelyWords
	case asked == known:
		return likelyWord
	case share == 0:
		return likelyJoined
	}
	return likelySimilar * share
}

// wordsOf returns the words of a plain name, sorted, each once.
func wordsOf(plain string) []string {
	words := strings.Fields(plain)
	slices.Sort(words)
	return slices.Compact(words)
}

// common returns the share of words that two names have in common, among all words of both.
func common(a, b []string) float64 {
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch c := strings.Compare(a[i], b[j]); {
		case c == 0:
			both, i, j = both+1, i+1, j+1
		case c < 0:
			i++
		default:
			j++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

// better orders candidates: the most likely first, then by domain, then by name, without a name last.
func better(a, b Candidate) int {
	if c := cmp.Or(cmp.Compare(b.Likelihood, a.Likelihood), strings.Compare(a.Domain, b.Domain)); c != 0 {
		return c
	}
	switch {
	case a.CompanyName == b.CompanyName:
		return 0
	case a.CompanyName == "":
		return 1
	case b.CompanyName == "":
		return -1
	}
	return strings.Compare(a.CompanyName, b.CompanyName)
}

// keep adds a candidate to those of a question, which are sorted by better. It keeps the better one of a domain, and drops the worst if
// there are too many.
func keep(all *[]Candidate, c Candidate) {
	list := *all
	if len(list) == candidatesMax && better(c, list[len(list)-1]) >= 0 {
		return
	}
	if i := slices.IndexFunc(list, func(old Candidate) bool { return old.Domain == c.Domain }); i >= 0 {
		if better(c, list[i]) >= 0 {
			return
		}
		list = slices.Delete(list, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(list, c, better)
	list = slices.Insert(list, i, c)
	*all = list[:min(len(list), candidatesMax)]
}

// Answers returns the answers in the order of the questions.
func (m *Matcher) Answers() []Answer {
	answers := make([]Answer, len(m.asked))
	for i := range m.asked {
		answers[i] = m.asked[i].answer()
	}
	return answers
}

func (q *question) answer() Answer {
	a := Answer{Input: q.Input, Kind: q.Kind, Others: []Candidate{}}
	found := q.byKey
	if len(found) == 0 && len(q.byName) > 0 {
		a.Kind, found = Name, q.byName
	}
	ranked := slices.Clone(found)
	if len(ranked) == 0 {
		return a
	}
	// One is meant: those that are as likely as the best share its likelihood, and leave the rest of it to the others.
	best := ranked[0].Likelihood
	sum := 0.0
	for _, c := range ranked {
		sum += weight(c.Likelihood, best)
	}
	for i := range ranked {
		ranked[i].Likelihood = round(best * weight(ranked[i].Likelihood, best) / sum)
	}
	a.Candidate = ranked[0]
	a.Ambiguous = len(ranked) > 1 && ranked[1].Likelihood >= ambiguousShare*ranked[0].Likelihood
	a.Others = append(a.Others, ranked[1:min(len(ranked), 1+othersMax)]...)
	return a
}

// weight returns the weight of a candidate in a share of the best likelihood: the square of the ratio of odds. So a similar name takes
// little from an equal one.
func weight(likelihood, best float64) float64 {
	if likelihood == best {
		return 1
	}
	odds := func(p float64) float64 { return p / (1 - p) }
	return math.Pow(odds(likelihood)/odds(best), 2)
}

// round rounds to two digits.
func round(p float64) float64 { return math.Round(p*100) / 100 }
