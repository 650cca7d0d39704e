// Package docs embeds the documents that the server shows to callers.
package docs

import _ "embed"

// Versioning is versioning.md: what may change in the interface, and how it is announced.
//
//go:embed versioning.md
var Versioning []byte
