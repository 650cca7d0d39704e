package server

import (
	"bytes"
	"mime"
	"path"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/docs"
	"companyscore/server/documents"
	"companyscore/server/openapi"
)

// docsAge is the max-age of the description, its page and the documents.
const docsAge = time.Hour

const (
	htmlType = "text/html; charset=utf-8"
	// searchPath is the address of the search in the documents.
	searchPath = documents.Root + "search"
	// documentsPolicy allows the documents their style, their pictures and the search.
	documentsPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'self'; " +
		"frame-ancestors 'none'"
)

// addDocs adds the routes of the API description, the page that shows it, the pages about
// errors, the policy of versions and the documents. They need no API key.
func (s *Server) addDocs() error {
	document := newFixed(openapi.Document())
	s.app.Get("/openapi.json", func(c *fiber.Ctx) error {
		return s.sendFixed(c, document, replyInfo{origin: originTable, maxAge: docsAge})
	})
	for name, file := range openapi.Page {
		if name != "" {
			s.app.Get("/docs/"+name, s.docsFile(file.Type, file.Body))
		}
	}
	reference := openapi.Page[""]
	showReference := s.docsFile(reference.Type, reference.Body)
	s.app.Get("/docs", func(c *fiber.Ctx) error {
		if c.Path() == documents.Root { // the route is that of both addresses
			return s.showDocument(c)
		}
		return showReference(c)
	})
	pages, err := renderErrorPages()
	if err != nil {
		return err
	}
	for path, page := range pages {
		s.app.Get(path, s.docsFile(htmlType, page))
	}
	s.app.Get(versioningPath, s.docsFile("text/plain; charset=utf-8", docs.Versioning))
	return s.addDocuments()
}

// addDocuments adds the routes of the documents but the first.
func (s *Server) addDocuments() error {
	addresses, pictures, err := documents.Addresses(docs.Files)
	if err != nil {
		return err
	}
	for _, address := range addresses {
		if address != documents.Root {
			s.app.Get(address, s.showDocument)
		}
	}
	for name, address := range pictures {
		body, err := docs.Files.ReadFile(name)
		if err != nil {
			return err
		}
		s.app.Get(address, s.docsFile(mime.TypeByExtension(path.Ext(name)), body))
	}
	s.app.Get(searchPath, s.searchDocuments)
	return nil
}

// docsFile returns a handler that answers with a file of the documentation.
func (s *Server) docsFile(kind string, content []byte) fiber.Handler {
	body := newFixed(content)
	return func(c *fiber.Ctx) error { return s.sendDocs(c, body, kind, openapi.ContentSecurityPolicy) }
}

// sendDocs answers with a part of the documentation.
func (s *Server) sendDocs(c *fiber.Ctx, body fixed, kind, policy string) error {
	c.Set(fiber.HeaderContentSecurityPolicy, policy)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	if err := s.sendFixed(c, body, replyInfo{origin: originTable, maxAge: docsAge}); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, kind)
	return nil
}

// documentPages are the documents, rendered on first use.
var documentPages = sync.OnceValues(func() (*renderedDocuments, error) {
	library, err := documents.New(docs.Files)
	if err != nil {
		return nil, err
	}
	r := &renderedDocuments{library: library, pages: make(map[string]fixed)}
	for address, page := range library.Pages {
		var body bytes.Buffer
		if err := pageTemplates.ExecuteTemplate(&body, "document", shownDocument{Page: page, Groups: library.Groups}); err != nil {
			return nil, err
		}
		r.pages[address] = newFixed(body.Bytes())
	}
	return r, nil
})

type renderedDocuments struct {
	library *documents.Library
	pages   map[string]fixed // by address
}

// shownDocument is what the templates show: a page, or the hits of a query.
type shownDocument struct {
	Page   *documents.Page
	Groups []documents.Group
	Query  string
	Hits   []documents.Hit
}

// showDocument answers with the document of the route.
func (s *Server) showDocument(c *fiber.Ctx) error {
	all, err := documentPages()
	if err != nil {
		return err
	}
	address := c.Route().Path
	if address == "/docs" {
		address = documents.Root
	}
	return s.sendDocs(c, all.pages[address], htmlType, documentsPolicy)
}

// searchDocuments answers with the sections of the documents that have all words of the query q.
func (s *Server) searchDocuments(c *fiber.Ctx) error {
	all, err := documentPages()
	if err != nil {
		return err
	}
	query := c.Query("q")
	shown := shownDocument{Page: new(documents.Page), Groups: all.library.Groups, Query: query, Hits: all.library.Search(query)}
	var body bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&body, "search", shown); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentSecurityPolicy, documentsPolicy)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	if err := s.sendRendered(c, tagged(body.Bytes()), replyInfo{origin: originTable, maxAge: docsAge}); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, htmlType)
	return nil
}
