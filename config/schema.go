package config

import (
	"bytes"
	_ "embed"
)

//go:embed schema/gateway.schema.json
var gatewaySchema []byte

//go:embed schema/registration.schema.json
var registrationSchema []byte

// GatewaySchema returns the JSON Schema (2020-12) of the gateway file, for
// editors. It refers to the one of registration documents by its $id. A file
// that it accepts can still break rules that a schema cannot state.
func GatewaySchema() []byte { return bytes.Clone(gatewaySchema) }

// RegistrationSchema returns the JSON Schema (2020-12) of portable
// registration documents of both snapshots, as far as this gateway serves them.
func RegistrationSchema() []byte { return bytes.Clone(registrationSchema) }
