// Package tenant turns a caller's credential into the tenant it speaks for and
// keeps one tenant's traffic from crowding out another's.
package tenant
