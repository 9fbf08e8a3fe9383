#!/usr/bin/env bash
# Writes .env (or $ENV_FILE) with random keys, if there is none yet.
set -euo pipefail
file=${ENV_FILE:-$(dirname "$0")/.env}
if [ -e "$file" ]; then
	exit 0
fi
umask 077
random() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }
for name in GATEWAY_KEY POLICY_TOKEN REDIS_PASSWORD; do
	echo "$name=$(random)"
done >"$file"
echo "keys are in $file"
