#!/bin/sh
# Installs Slipway for this system, without root: fetches the program, checks the signature and the digest, and puts it into a folder.
#   SLIPWAY_RELEASE_URL   where the release is
#   SLIPWAY_INSTALL_DIR   where the program goes: ~/.local/bin, for root /usr/local/bin
set -eu

address=${SLIPWAY_RELEASE_URL:-@URL@}
public_key='@PUBLIC_KEY@'

fail() {
  echo "slipway: $*" >&2
  exit 1
}

main() {
  [ -n "$address" ] || fail "set SLIPWAY_RELEASE_URL to the address of the release"
  address=${address%/}
  if [ -n "${SLIPWAY_INSTALL_DIR:-}" ]; then folder=$SLIPWAY_INSTALL_DIR
  elif [ "$(id -u)" = 0 ]; then folder=/usr/local/bin
  else folder=$HOME/.local/bin; fi

  name=slipway-$(system).gz
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 1' HUP INT TERM

  fetch SHA256SUMS
  fetch SHA256SUMS.minisig
  verify "$scratch/SHA256SUMS"
  expected=$(awk -v name="$name" '$2 == name {print $1}' "$scratch/SHA256SUMS")
  [ -n "$expected" ] || fail "the release has no $name"
  fetch "$name"
  [ "$(sha256 "$scratch/$name")" = "$expected" ] || fail "$name is damaged or was not downloaded completely; nothing was installed"

  mkdir -p "$folder"
  # On the same disk, so that the last step is one rename.
  part=$folder/.slipway.part.$$
  trap 'rm -rf "$scratch" "$part"' EXIT
  gzip -dc "$scratch/$name" >"$part"
  chmod 755 "$part"
  said=$("$part" version) || fail "the program does not run on this system; nothing was installed"
  mv -f "$part" "$folder/slipway"
  echo "Installed $said as $folder/slipway"
  case ":$PATH:" in
  *":$folder:"*) echo "Start a server: slipway serve" ;;
  *) echo "Add $folder to PATH, then start a server: slipway serve" ;;
  esac
}

# The system's name in the release, such as linux-musl-arm64.
system() {
  case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) fail "there is no release for $(uname -s)" ;;
  esac
  case $(uname -m) in
  x86_64 | amd64) machine=amd64 ;;
  aarch64 | arm64) machine=arm64 ;;
  *) fail "there is no release for $(uname -m)" ;;
  esac
  if [ "$os" = linux ] && ls /lib/ld-musl-* >/dev/null 2>&1 && ! ls /lib*/ld-linux-* >/dev/null 2>&1; then os=linux-musl; fi
  echo "$os-$machine"
}

fetch() {
  if command -v curl >/dev/null; then curl -fsSL --retry 3 -o "$scratch/$1" "$address/$1" || fail "cannot fetch $address/$1"
  elif command -v wget >/dev/null; then wget -q -O "$scratch/$1" "$address/$1" || fail "cannot fetch $address/$1"
  else fail "curl or wget is needed"; fi
}

sha256() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

# verify FILE: checks FILE.minisig, by minisign or else by OpenSSL.
verify() {
  [ -n "$public_key" ] || fail "this release is not signed, so its script does not install it"
  if command -v minisign >/dev/null; then
    minisign -V -q -P "$public_key" -m "$1" >/dev/null 2>&1 || fail "the signature is wrong; nothing was installed"
    return
  fi
  command -v openssl >/dev/null && openssl list -digest-algorithms 2>/dev/null | grep -qi blake2b512 &&
    openssl pkeyutl -help 2>&1 | grep -q -e -rawin ||
    fail "minisign or OpenSSL 3 is needed to check the signature; install one of them"
  sed -n 2p "$1.minisig" | openssl base64 -d -A >"$scratch/signature"
  # Behind the name of the algorithm and the id of the key.
  tail -c 64 "$scratch/signature" >"$scratch/bare"
  { printf '\060\052\060\005\006\003\053\145\160\003\041\000'; printf %s "$public_key" | openssl base64 -d -A | tail -c 32; } >"$scratch/key"
  openssl dgst -blake2b512 -binary "$1" >"$scratch/digest"
  openssl pkeyutl -verify -pubin -keyform DER -inkey "$scratch/key" -rawin -in "$scratch/digest" -sigfile "$scratch/bare" \
    >/dev/null 2>&1 || fail "the signature is wrong; nothing was installed"
}

# All of it has been read before anything is done.
main
