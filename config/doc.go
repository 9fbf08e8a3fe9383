// Package config reads the gateway file and portable registration documents.
//
// Both may be written in YAML or in JSON; a document whose first byte that is
// no space is '{' is read as JSON. Reading is strict: duplicate keys, anchors,
// aliases, merge keys, several documents, invalid UTF-8, and values of the
// wrong kind are mistakes, because two readers could disagree about them.
// Every mistake of a file is reported at once, each with its position, its
// path, and what to write instead.
//
// Tenants may be files of a folder, one each. A [Loader] reads of these only what
// has changed since it read them before.
//
// A [File] that Load or Parse returned is complete (every default filled in),
// valid, and never changes. The zero value of a setting that the file leaves
// out is never visible to the rest of the gateway.
package config
