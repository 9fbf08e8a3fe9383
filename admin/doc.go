// Package admin is the API by which the tenants of a running gateway are added,
// changed and removed, for its private listener: openapi.yaml describes it.
//
// A tenant that the API made is a document in a [Store]: in a folder of files that
// the gateway file names as tenantsDir, or in what replicas share. A change is put in place
// only after the gateway serves it: a document with which the configuration as
// a whole cannot be used is refused, and neither a later reload nor a restart
// finds it. One change is made at a time. Each leaves a record, also one that
// is refused.
//
// The secrets of such tenants are set through the API too, and told nobody:
// see package sealed. A secret is in place before the gateway serves it, because
// that reads it from there, and is taken back where it cannot be served.
package admin
