#!/bin/sh
# A Debian that begins as a copy of this machine and ends with this process: debian.sh PACKAGES TREE. The first call makes it (as root, in
# namespaces of its own), the second one happens inside of it.
set -eu

if [ "${1:-}" != inside ]; then
  packages=$1 tree=$2
  mount -t tmpfs none "$tree"
  mkdir "$tree/upper" "$tree/work" "$tree/root"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$tree/upper,workdir=$tree/work" "$tree/root"
  mount -t proc proc "$tree/root/proc"
  mount --rbind /dev "$tree/root/dev"
  # Without the system's own service manager, and what it has started.
  mount -t tmpfs none "$tree/root/run"
  mkdir "$tree/root/run/packages"
  mount --bind "$packages" "$tree/root/run/packages"
  cp "$0" "$tree/root/run/debian.sh"
  exec chroot "$tree/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive sh /run/debian.sh inside
fi

say() { echo "== $*"; }
install() { apt-get -qq install --yes --no-install-recommends --allow-downgrades "$1" >/run/apt.log 2>&1 || { cat /run/apt.log; exit 1; }; }

# As the unit starts it: its command, its user, its file of variables.
start() {
  command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/slipway.service | tr -d '"')
  (exec setpriv --reuid=slipway --regid=slipway --clear-groups --reset-env env $(grep -h ^SLIPWAY_ /etc/slipway/env) $command) >/run/log 2>&1 &
  server=$!
  tries=300
  until slipway health >/dev/null 2>&1; do
    tries=$((tries - 1))
    if [ $tries = 0 ] || ! kill -0 $server 2>/dev/null; then cat /run/log; exit 1; fi
    sleep 0.1
  done
}
stop() { kill $server && wait $server && say "stopped with 0"; }
login() {
  curl -s -o /dev/null -w '%{http_code}' -H 'content-type: application/json' \
    -d '{"email":"ada@example.com","password":"correct horse, battery"}' http://127.0.0.1:7080/api/v2/users/login
}

ip link set lo up
install /run/packages/slipway_0.2.0_*.deb
say "account $(getent passwd slipway | cut -d: -f6,7)"
say "data $(stat -c '%U %a' /var/lib/slipway) settings $(stat -c '%U:%G %a' /etc/slipway/env)"
say "owner $(dpkg -S /usr/bin/slipway)"
say "$(slipway version | cut -d' ' -f1)"
printf 'SLIPWAY_ADMIN_EMAIL=ada@example.com\nSLIPWAY_ADMIN_USERNAME=ada\nSLIPWAY_ADMIN_PASSWORD_FILE=/etc/slipway/password\n' >>/etc/slipway/env
(umask 077 && printf 'correct horse, battery' >/etc/slipway/password && chown slipway /etc/slipway/password)
start
say "first user $(login)"
stop

install /run/packages/slipway_0.2.1_*.deb
say "version $(dpkg-query -W -f '${Version}' slipway) settings kept $(grep -c ADMIN_EMAIL /etc/slipway/env)"
start
say "after the upgrade $(login)"
stop

install /run/packages/slipway_0.2.0_*.deb
start
say "back at $(dpkg-query -W -f '${Version}' slipway) $(login)"
stop

apt-get -qq remove --yes slipway >/dev/null 2>&1
hash -r
say "removed $(command -v slipway || echo gone) data $(ls /var/lib/slipway/slipway.db)"
apt-get -qq purge --yes slipway 2>/dev/null | grep kept
say "purged $([ -e /etc/slipway/env ] || echo settings gone) data $(ls /var/lib/slipway/slipway.db)"
