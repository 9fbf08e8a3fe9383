#!/bin/sh
set -e
# What the gateway has written goes with its configuration, on purge alone.
if [ "${1:-}" = purge ]; then
	rm -rf "${DPKG_ROOT:-}/var/lib/ahp-gateway" "${DPKG_ROOT:-}/var/lib/private/ahp-gateway" \
		"${DPKG_ROOT:-}/var/log/ahp-gateway" "${DPKG_ROOT:-}/var/log/private/ahp-gateway"
fi
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
