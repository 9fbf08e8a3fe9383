package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ahp-gateway/ahp-gateway/config"
	"github.com/ahp-gateway/ahp-gateway/gateway"
	"github.com/ahp-gateway/ahp-gateway/shared"
)

// storePatience bounds how long a command reads the tenants in Redis.
const storePatience = 30 * time.Second

// withStoreUsage is what the flag of that name says of itself.
const withStoreUsage = "read the tenants in Redis too, where the file has adminApi.store: redis"

// loaded is a gateway file as a command has read it.
type loaded struct {
	file     *config.File
	warnings []config.Mistake
	// leftOut are what keeps stored tenants from being served, which are not in file.
	leftOut config.Mistakes
}

// outside returns, as warnings, what keeps stored tenants out of file, or nil.
func (l *loaded) outside() error {
	if len(l.leftOut) == 0 {
		return nil
	}
	left := slices.Clone(l.leftOut)
	for i := range left {
		left[i].Warning = true
		left[i].What = "the tenant is left out: " + left[i].What
	}
	return left
}

// loadFile reads a gateway file and, if store is set, the tenants that it has in
// Redis. Without that a warning says that they were not looked at.
func loadFile(ctx context.Context, path string, store bool) (loaded, error) {
	loader := config.NewLoader(path, nil)
	f, warnings, err := loader.Load()
	about := config.Mistake{File: path, Path: "adminApi.store", Warning: true}
	switch {
	case err != nil:
		return loaded{f, warnings, nil}, err
	case f.AdminAPI.Store != "redis" && store:
		about.What, about.Instead = "the file has no tenants in Redis, so --with-store reads nothing", "leave --with-store out, or write adminApi: {store: redis}"
		return loaded{f, append(warnings, about), nil}, nil
	case f.AdminAPI.Store != "redis":
		return loaded{f, warnings, nil}, nil
	case !store:
		about.What, about.Instead = "the tenants in Redis are not looked at", "add --with-store where Redis can be reached"
		return loaded{f, append(warnings, about), nil}, nil
	}
	if loader.Stored, err = readStore(ctx, &f.Shared.Redis, storePatience); err != nil {
		about.Warning = false
		about.What, about.Instead = "the tenants in Redis cannot be read, "+err.Error(), "correct that, or leave --with-store out"
		return loaded{nil, warnings, nil}, config.Mistakes{about}
	}
	f, warnings, err = loader.Load()
	l := loaded{f, warnings, nil}
	for _, out := range loader.LeftOut {
		l.leftOut = append(l.leftOut, out.Mistake)
	}
	return l, err
}

// readStore returns the documents of tenants in Redis by id. Its errors are for people.
func readStore(ctx context.Context, r *config.Redis, patience time.Duration) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type trouble struct {
		class shared.Class
		reply string
	}
	told := make(chan trouble, 1) // why Redis is not asked
	store, err := gateway.OpenStore(r, nil, func(c shared.Class, reply string) {
		select {
		case told <- trouble{c, reply}:
		default: // the first reason is the one
		}
	})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	documents, class := store.Documents("tenants").All(ctx)
	if class == shared.OK {
		return documents, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("it took longer than %v", patience)
	}
	why := trouble{class: class}
	if class == shared.Skipped {
		select {
		case why = <-told:
		case <-ctx.Done():
		}
	}
	if why.reply != "" {
		return nil, fmt.Errorf("%s (%s)", storeTrouble(why.class), why.reply)
	}
	return nil, errors.New(storeTrouble(why.class))
}

// storeTrouble says to people why Redis gave nothing, and what to look at.
func storeTrouble(c shared.Class) string {
	switch c {
	case shared.Timeout:
		return "Redis did not reply in time: see whether it is overloaded or cut off, or write a longer shared.redis.timeout"
	case shared.Unreachable:
		return "there is no connection to Redis: see that it runs, and that shared.redis.url is right"
	case shared.Refused:
		return "Redis answered with an error: see that its user, password and permissions are right"
	case shared.Malformed:
		return "Redis has something else in the place of the documents of tenants: see that nobody else uses shared.redis.prefix"
	case shared.Busy:
		return "too many calls are waiting for Redis: try again"
	case shared.Skipped:
		return "Redis failed a moment ago, and is asked again every second: try again"
	default:
		return "Redis gave nothing"
	}
}
