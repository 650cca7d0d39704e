// Package openapi embeds the OpenAPI description of the HTTP API and the page that shows it.
// The description is written by hand. The contract tests compare every answer of the server
// with it.
package openapi

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"sync"

	"gopkg.in/yaml.v3"
)

//go:embed openapi.yaml
var source []byte

//go:embed docs.html docs.js assets
var files embed.FS

// Document returns the description as JSON, in the order of openapi.yaml. The caller must not change it.
// The first call parses the file, so that commands that do not serve start without it.
var Document = sync.OnceValue(func() []byte { return mustJSON(source) })

// ContentSecurityPolicy allows the page to load resources of this server only.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File is a file of the page.
type File struct {
	Type string // content type
	Body []byte
}

// Page holds the files of the page by their path below /docs; "" is the page itself.
var Page = map[string]File{
	"":                     {"text/html; charset=utf-8", read("docs.html")},
	"docs.js":              {"text/javascript; charset=utf-8", read("docs.js")},
	"swagger-ui-bundle.js": {"text/javascript; charset=utf-8", read("assets/swagger-ui-bundle.js")},
	"swagger-ui.css":       {"text/css; charset=utf-8", read("assets/swagger-ui.css")},
}

func read(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil {
		panic("openapi: " + err.Error()) // cannot happen, the file is embedded
	}
	return b
}

// mustJSON returns the description as JSON. It panics on an error.
func mustJSON(text []byte) []byte {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		panic("openapi: " + err.Error())
	}
	var out bytes.Buffer
	if err := writeJSON(&out, document.Content[0]); err != nil {
		panic("openapi: " + err.Error())
	}
	return out.Bytes()
}

// writeJSON writes a node as JSON and keeps the order of keys.
func writeJSON(out *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.AliasNode:
		return writeJSON(out, node.Alias)
	case yaml.MappingNode, yaml.SequenceNode:
		brackets := "{}"
		if node.Kind == yaml.SequenceNode {
			brackets = "[]"
		}
		out.WriteByte(brackets[0])
		for i, child := range node.Content {
			if i > 0 {
				out.WriteByte(separator(node.Kind, i))
			}
			if node.Kind == yaml.MappingNode && i%2 == 0 {
				child = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: child.Value} // '200' and 200 are one key
			}
			if err := writeJSON(out, child); err != nil {
				return err
			}
		}
		out.WriteByte(brackets[1])
		return nil
	case yaml.ScalarNode:
		var value any
		if err := node.Decode(&value); err != nil {
			return err
		}
		if node.Tag == "!!timestamp" {
			value = node.Value
		}
		b, err := json.Marshal(value)
		if err != nil {
			return err
		}
		out.Write(b)
		return nil
	}
	return fmt.Errorf("line %d: a node of kind %d", node.Line, node.Kind)
}

// separator returns the byte before the i-th child of a mapping or sequence.
func separator(kind yaml.Kind, i int) byte {
	if kind == yaml.MappingNode && i%2 == 1 {
		return ':'
	}
	return ','
}
