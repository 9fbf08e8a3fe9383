// Docgen writes the pages of docs/reference that say what the code says: the
// configuration from its JSON Schemas, the commands from their help, metrics,
// failure classes and protocol coverage from where they are declared. It is run
// by go generate; the gate fails where a page is not what it writes.
package main
