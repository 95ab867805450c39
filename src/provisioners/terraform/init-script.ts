// Creates the script that downloads the agent's program to a machine and starts it. The provider fills in the access URL and the
// authentication type (facts/terraform 2.13); for /init-script, the server fills them in. Needs sh and curl, wget or busybox; on Windows,
// PowerShell.

const URL_PLACEHOLDER = "${" + "ACCESS_URL}";
const AUTH_PLACEHOLDER = "${" + "AUTH_TYPE}";

export const INIT_SYSTEMS = ["linux", "darwin", "windows"] as const;
export const INIT_ARCHITECTURES = ["amd64", "arm64", "armv7"] as const;

const toShellScript = (os: string, arch: string): string => `#!/bin/sh
# Fetches the workspace's agent from the server and starts it. Tries again until the server answers.
set -u
say() { echo "workspace agent: $*" >&2; }
folder=\${BINARY_DIR:-}
if [ -z "$folder" ]; then
  # One for all starts on this machine, so that they do not fill its disk; not one that somebody else has put there.
  folder=\${TMPDIR:-/tmp}/workspace-agent-$(id -u)
  mkdir -m 700 "$folder" 2>/dev/null
  if [ -L "$folder" ] || [ ! -O "$folder" ]; then folder=$(mktemp -d "$folder.XXXXXX") || exit 1; fi
fi
mkdir -p "$folder" || exit 1
program=$folder/slipway
new=$program.$$
kind=${os}
${os === "linux" ? 'for loader in /lib/ld-musl-*; do [ -e "$loader" ] && kind=linux-musl; done\n' : ""}from="${URL_PLACEHOLDER}bin/slipway-$kind-${arch}"
fetch() {
  if command -v curl >/dev/null 2>&1; then curl -fsSL -o "$new" "$from"
  elif command -v wget >/dev/null 2>&1; then wget -q -O "$new" "$from"
  elif command -v busybox >/dev/null 2>&1; then busybox wget -q -O "$new" "$from"
  else say "needs curl, wget or busybox"; exit 127
  fi
}
until fetch; do
  say "$from cannot be fetched, trying again in 30 seconds"
  sleep 30
done
chmod 755 "$new" && mv -f "$new" "$program" || exit 1
export CODER_AGENT_URL="${URL_PLACEHOLDER}"
export CODER_AGENT_AUTH="${AUTH_PLACEHOLDER}"
exec "$program" agent
`;

const toPowershellScript = (
  arch: string,
): string => `# Fetches the workspace's agent from the server and starts it. Tries again until the server answers.
$ErrorActionPreference = "Stop"
$folder = if ($env:BINARY_DIR) { $env:BINARY_DIR } else { Join-Path $env:TEMP "workspace-agent" }
New-Item -ItemType Directory -Force -Path $folder | Out-Null
$program = Join-Path $folder "slipway.exe"
$from = "${URL_PLACEHOLDER}bin/slipway-windows-${arch}.exe"
while ($true) {
  try { Invoke-WebRequest -UseBasicParsing -Uri $from -OutFile $program; break }
  catch { Write-Error -ErrorAction Continue "$from cannot be fetched, trying again in 30 seconds: $_"; Start-Sleep 30 }
}
$env:CODER_AGENT_URL = "${URL_PLACEHOLDER}"
$env:CODER_AGENT_AUTH = "${AUTH_PLACEHOLDER}"
& $program agent
exit $LASTEXITCODE
`;

/** Returns the script with the placeholders that the provider fills in. */
export const initScript = (os: string, arch: string): string =>
  os === "windows" ? toPowershellScript(arch) : toShellScript(os, arch);

/** Returns the script for /init-script: with the server's URL and token authentication. */
export const renderInitScript = (os: string, arch: string, access_url: string): string =>
  initScript(os, arch).replaceAll(URL_PLACEHOLDER, access_url).replaceAll(AUTH_PLACEHOLDER, "token");
