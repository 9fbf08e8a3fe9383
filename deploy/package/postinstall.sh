#!/bin/sh
# A new installation is not started: it serves nobody until it is configured. One
# that runs takes over the new program, after it has answered what it has accepted.
set -e
# In an image that is being made, DPKG_ROOT is set or systemd does not run.
if [ -n "${DPKG_ROOT:-}" ] || [ ! -d /run/systemd/system ]; then
	exit 0
fi
systemctl daemon-reload
systemctl try-restart ahp-gateway.service
