#!/bin/sh
# dpkg says "remove" or "upgrade", rpm how many will be left.
set -e
case "${1:-}" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -n "${DPKG_ROOT:-}" ] || [ ! -d /run/systemd/system ]; then
	exit 0
fi
systemctl disable --now ahp-gateway.service
