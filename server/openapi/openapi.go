// Package openapi holds the description of the HTTP interface and the page that
// shows it. The description is written by hand; the contract tests hold every
// answer of the server against it.
package openapi

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"

	"gopkg.in/yaml.v3"
)

//go:embed openapi.yaml
var source []byte

//go:embed docs.html docs.js assets
var files embed.FS

// Document is the description as JSON, in the order in which it is written.
var Document = mustJSON(source)

// ContentSecurityPolicy lets the page load what this server sends, and nothing else.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// File is a part of the page.
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
		panic("openapi: " + err.Error()) // it is embedded
	}
	return b
}

// mustJSON turns the description into JSON and stops the program when it cannot.
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

// writeJSON writes a node with its keys in their order.
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

// separator is what stands before the i-th child of a mapping or sequence.
func separator(kind yaml.Kind, i int) byte {
	if kind == yaml.MappingNode && i%2 == 1 {
		return ':'
	}
	return ','
}
