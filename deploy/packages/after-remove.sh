#!/bin/sh
# The data in /var/lib/slipway is never removed, because it exists nowhere else.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
case "$1" in
purge | 0)
  if [ -d /var/lib/slipway ]; then echo "The data of Slipway is kept in /var/lib/slipway."; fi
  ;;
esac
