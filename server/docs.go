package server

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"companyscore/server/openapi"
)

// docsAge is the max-age of the description and its page.
const docsAge = time.Hour

// addDocs adds the routes of the API description and of the page that shows it. They need
// no API key.
func (s *Server) addDocs() {
	document := newFixed(openapi.Document)
	s.app.Get("/openapi.json", func(c *fiber.Ctx) error {
		return s.sendFixed(c, document, answer{tier: tierTable, maxAge: docsAge})
	})
	for name, file := range openapi.Page {
		path := "/docs"
		if name != "" {
			path += "/" + name
		}
		body := newFixed(file.Body)
		s.app.Get(path, func(c *fiber.Ctx) error {
			c.Set(fiber.HeaderContentSecurityPolicy, openapi.ContentSecurityPolicy)
			c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
			if err := s.sendFixed(c, body, answer{tier: tierTable, maxAge: docsAge}); err != nil {
				return err
			}
			c.Set(fiber.HeaderContentType, file.Type)
			return nil
		})
	}
}
