package recording

import (
	"crypto/tls"
	"mime"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Seen is what the exchanges of one source show about its servers.
type Seen struct {
	// Requests is the number of requests that were sent, DNS questions for addresses included.
	Requests int
	// Reached is set if a server of the source answered.
	Reached bool
	// Types are the media types of answers with a body, or "DNS", or the version of TLS.
	Types []string
	// Limits are the headers that announce limits, with the newest value of each.
	Limits []string
	// Took is the time from the first request to the end of the last answer.
	Took time.Duration
}

// SeenOf returns what the exchanges of a source in the run of a company show, with those besides runs.
func SeenOf(exchanges []Exchange, source, company string) Seen {
	var s Seen
	limits := make(map[string]string)
	first, last := int64(-1), int64(0)
	for _, e := range exchanges {
		if e.Source != source || e.Company != company && e.Company != "" || e.Failure != nil && e.Failure.Unsent {
			continue
		}
		s.Requests++
		if first < 0 || e.At < first {
			first = e.At
		}
		last = max(last, e.At+e.Took)
		switch {
		case e.HTTP != nil:
			s.Reached = true
			if media, _, err := mime.ParseMediaType(e.HTTP.Header.Get("Content-Type")); err == nil && e.HTTP.Status/100 == 2 {
				s.addType(media)
			}
			for name := range e.HTTP.Header {
				if isLimit(name) {
					limits[strings.ToLower(name)] = host(e.Request) + " " + strings.ToLower(name) + ": " + e.HTTP.Header.Get(name)
				}
			}
		case e.TLS != nil:
			s.Reached = true
			s.addType(tls.VersionName(e.TLS.Version))
		case e.DNS != nil && source == "dns":
			s.Reached = true
			s.addType("DNS")
		}
	}
	for _, limit := range limits {
		s.Limits = append(s.Limits, limit)
	}
	slices.Sort(s.Limits)
	slices.Sort(s.Types)
	s.Took = time.Duration(max(0, last-max(first, 0))) * time.Millisecond
	return s
}

func (s *Seen) addType(name string) {
	if !slices.Contains(s.Types, name) {
		s.Types = append(s.Types, name)
	}
}

// host returns the host of a GET request.
func host(request string) string {
	text, _, _ := strings.Cut(strings.TrimPrefix(request, "GET "), " ")
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}
