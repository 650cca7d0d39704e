package server

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/docs"
	"companyscore/server/openapi"
)

// docsAge is the max-age of the description and its page.
const docsAge = time.Hour

// addDocs adds the routes of the API description, the page that shows it, the pages about
// errors and the policy of versions. They need no API key.
func (s *Server) addDocs() error {
	document := newFixed(openapi.Document)
	s.app.Get("/openapi.json", func(c *fiber.Ctx) error {
		return s.sendFixed(c, document, replyInfo{origin: originTable, maxAge: docsAge})
	})
	for name, file := range openapi.Page {
		path := "/docs"
		if name != "" {
			path += "/" + name
		}
		s.app.Get(path, s.docsFile(file.Type, file.Body))
	}
	pages, err := renderErrorPages()
	if err != nil {
		return err
	}
	for path, page := range pages {
		s.app.Get(path, s.docsFile("text/html; charset=utf-8", page))
	}
	s.app.Get(versioningPath, s.docsFile("text/plain; charset=utf-8", docs.Versioning))
	return nil
}

// docsFile returns a handler that answers with a file of the documentation.
func (s *Server) docsFile(kind string, content []byte) fiber.Handler {
	body := newFixed(content)
	return func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentSecurityPolicy, openapi.ContentSecurityPolicy)
		c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
		if err := s.sendFixed(c, body, replyInfo{origin: originTable, maxAge: docsAge}); err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, kind)
		return nil
	}
}
