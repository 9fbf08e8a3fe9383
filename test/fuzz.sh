#!/bin/sh
# Runs every fuzz target of the module for FUZZTIME (default 10s), one at a time.
# Fails on the first input that a target refuses, and if there is no target.
set -eu

go=${GO:-go}
time=${FUZZTIME:-10s}
count=0

packages=$($go list ./...)
for package in $packages; do
	targets=$($go test -list '^Fuzz' "$package" | grep '^Fuzz' || true)
	for target in $targets; do
		echo "$package $target"
		$go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
		count=$((count + 1))
	done
done

if [ "$count" -eq 0 ]; then
	echo "no fuzz target found" >&2
	exit 1
fi
echo "$count fuzz targets ran for $time each"
