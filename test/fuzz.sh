#!/bin/sh
# Runs every fuzz target of the module for FUZZTIME (default 10s), one at a time.
# Fails on the first input that a target refuses, and if there is no target.
set -eu

go=${GO:-go}
time=${FUZZTIME:-10s}
count=0

# run runs one target. go test can fail with nothing but its own deadline, which
# says nothing about the target: then it is run once more.
run() {
	$go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" "$1" >"$output" 2>&1 && status=0 || status=$?
	cat "$output"
	return "$status"
}
output=$(mktemp)
trap 'rm -f "$output"' EXIT

packages=$($go list ./...)
for package in $packages; do
	targets=$($go test -list '^Fuzz' "$package" | grep '^Fuzz' || true)
	for target in $targets; do
		echo "$package $target"
		if ! run "$package" "$target"; then
			if grep -q 'Failing input written' "$output" || ! grep -q 'context deadline exceeded' "$output"; then
				exit 1
			fi
			run "$package" "$target"
		fi
		count=$((count + 1))
	done
done

if [ "$count" -eq 0 ]; then
	echo "no fuzz target found" >&2
	exit 1
fi
echo "$count fuzz targets ran for $time each"
