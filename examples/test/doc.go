// Package examples has no code: its tests run the examples as their readers
// would, behind the gateway that is built from the same tree.
package examples
