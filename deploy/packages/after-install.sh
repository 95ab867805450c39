#!/bin/sh
# Debian calls this with `configure [OLD-VERSION]`, RPM with the number of versions that are installed.
set -e

case "$1" in
configure) previous=$2 ;;
1) previous='' ;;
[2-9]) previous=another ;;
*) exit 0 ;;
esac

if ! getent passwd slipway >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/slipway --no-create-home --shell /usr/sbin/nologin slipway
fi
install -d -o slipway -g slipway -m 0700 /var/lib/slipway
chown root:slipway /etc/slipway/env

[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if [ -n "$previous" ]; then
  systemctl try-restart slipway.service
else
  systemctl enable --now slipway.service
  echo "Slipway runs. The link for the first user: journalctl -u slipway"
fi
