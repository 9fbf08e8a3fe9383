// Package routing decides which subscriptions an event goes to, in which order.
package routing
