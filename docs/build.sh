#!/bin/sh
# Builds the documentation site into .cache/site, with every warning an error.
# Needs Python 3.11 or newer. The generator goes into a virtual environment
# under .cache, made anew when its pinned versions change.
set -eu

cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
key=$("$python" -c \
	'import hashlib, sys; print(hashlib.sha256(sys.version.encode() + sys.stdin.buffer.read()).hexdigest()[:16])' \
	<docs/requirements.txt)
venv=.cache/docs-$key
if [ ! -e "$venv/complete" ]; then
	rm -rf "$venv"
	"$python" -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement docs/requirements.txt
	touch "$venv/complete"
fi
# The notices of the theme's makers are no warnings about our pages.
NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true PYTHONDONTWRITEBYTECODE=1 "$venv/bin/mkdocs" build --strict

# Whoever reads a page asks no other host for anything.
if grep -rlE '<(script|img|iframe|source)[^>]*[[:space:]]src="?(https?:)?//|<link[^>]*rel="?(stylesheet|preconnect|preload|icon)[^>]*href="?(https?:)?//' .cache/site --include='*.html'; then
	echo "the pages above load something from another host" >&2
	exit 1
fi
echo "the site is in .cache/site"
