// Package schema holds this project's JSON Schema (2020-12) files for the
// messages of both protocol snapshots. The same rules are written in Go in
// package ahp, whose tests hold the two against each other. Those of draft are
// made from the shapes there: go test ./ahp -update writes them anew.
//
// A schema cannot state everything the decoder checks: that the request's id is
// params.event.id, that member names are unique, that nesting is at most 128
// deep, that a text is valid UTF-8 without lone surrogates. Validate with
// format assertions on: params.event.source and params.event.time need them.
package schema

import "embed"

// FS holds the schema files under their snapshot's name, for example
// 0.1/intercept-request.schema.json. Each refers to the others by $id, a URN,
// so a validator has to be given all of them before it compiles one.
//
//go:embed 0.1/*.schema.json draft/*.schema.json
var FS embed.FS
