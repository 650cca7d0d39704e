package server

import (
	"bytes"

	"github.com/gofiber/fiber/v2"
)

// includeEvidence is the value of include that adds the evidence to each score. There is no
// other value.
const includeEvidence = "evidence"

// queryIncludes reports whether the query asks for the evidence. The error is errInclude for any
// other value.
func queryIncludes(c *fiber.Ctx) (evidence bool, err error) {
	for _, values := range c.Context().QueryArgs().PeekMulti("include") {
		for value := range bytes.SplitSeq(values, []byte{','}) {
			if string(value) != includeEvidence {
				return false, &errInclude
			}
			evidence = true
		}
	}
	return evidence, nil
}

// bodyIncludes is queryIncludes for the field include of a body. The error is errBodyInclude.
func bodyIncludes(values []string) (evidence bool, err error) {
	for _, value := range values {
		if value != includeEvidence {
			return false, &errBodyInclude
		}
		evidence = true
	}
	return evidence, nil
}
