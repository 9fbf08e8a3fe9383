#!/bin/sh
# Writes what packages hold beside the program and the tree's own files: manual
# pages and shell completions. Usage, in the root of the tree:
#   sh deploy/package/generate.sh DIR
set -eu
out=$1
date=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" +%F)
rm -rf "$out"
mkdir -p "$out/completions"
# For the machine that this runs on, whatever is being built beside it.
GOOS='' GOARCH='' GOARM='' go build -trimpath -o "$out/ahp-gateway" ./cmd/ahp-gateway
"$out/ahp-gateway" man --dir "$out/man" --date "$date"
gzip -9n "$out"/man/*.1
for shell in bash zsh fish powershell; do
	"$out/ahp-gateway" completion $shell >"$out/completions/ahp-gateway.$shell"
done
rm "$out/ahp-gateway"
