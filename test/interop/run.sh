#!/bin/sh
# Runs the interoperability tests against a built gateway: run.sh BINARY [TEST…]
# Needs Python 3.11 or newer. The official SDK goes into a virtual environment
# under .cache, made anew when its pinned versions change.
set -eu

binary=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

"$python" - <<'EOF'
import sys
if sys.version_info < (3, 11):
    sys.exit("the interoperability tests need Python 3.11 or newer, not " + sys.version.split()[0])
EOF

key=$("$python" -c \
	'import hashlib, sys; print(hashlib.sha256(sys.version.encode() + sys.stdin.buffer.read()).hexdigest()[:16])' \
	<"$here/requirements.txt")
venv=$here/../../.cache/interop-$key
if [ ! -e "$venv/complete" ]; then
	rm -rf "$venv"
	"$python" -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
	touch "$venv/complete"
fi

# Our verdicts on messages and registrations against the official schemas'.
schemas=$("$venv/bin/python" -c 'import agenthooksprotocol, pathlib; print(pathlib.Path(agenthooksprotocol.__file__).with_name("schemas.json"))')
(cd "$here/../.." && AHP_SDK_SCHEMAS=$schemas go test -tags interop -run TestSDK ./ahp ./config)

cd "$here"
AHP_GATEWAY=$binary PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" -W error::ResourceWarning main.py "$@"
