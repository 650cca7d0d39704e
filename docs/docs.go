// Package docs embeds the documents that the server shows to callers.
package docs

import "embed"

// Versioning is versioning.md: what may change in the interface, and how it is announced.
//
//go:embed versioning.md
var Versioning []byte

// Files are all documents with their pictures, and the worked queries in sql.
//
//go:embed *.md adr images sql
var Files embed.FS
