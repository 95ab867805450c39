#!/bin/sh
# Debian calls this with `remove` or `upgrade`, RPM with the number of versions that stay.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now slipway.service
