// Package chart_test tests the Helm chart without a cluster: what helm makes of
// it for the value files in testdata/values is compared with golden files, decoded
// strictly, held against the schemas that Kubernetes publishes and against the
// restricted Pod Security Standard, and its configuration is loaded and served by
// the real gateway.
//
// It is a module of its own, because the gateway needs none of this.
//
//	go test ./...          # Needs the network once, for modules
//	go test . -update      # Writes golden files, values.schema.json and README.md anew
package chart_test
