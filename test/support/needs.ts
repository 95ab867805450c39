// The programs that only some tests need and only some machines have. A test runs where its program is found and is skipped elsewhere, with
// the reason in its title, which test/run.ts prints. `.ci/run` installs or starts all such programs, so nothing is skipped there.
import { test } from "bun:test";
import { hasEnded, isPrepared } from "./run/preparing.ts";

export interface Need {
  readonly found: boolean;
  /** The Debian package that contains it, if any. */
  readonly debian?: string;
  /** Completes the sentence "skipped: ...". */
  readonly reason: string;
  /** The program's path; empty if missing. */
  readonly file: string;
  /** Returns true while a script of `.ci` still has to determine `found`. */
  readonly isPending?: () => boolean;
}

const requireProgram = (debian: string, ...names: string[]): Need => {
  const file = names.map((name) => Bun.which(name)).find((path) => path !== null) ?? "";
  return { found: file !== "", reason: `needs the program ${names[0]}`, file, debian };
};

/** Finds a program for compose files: Docker's plugin (then `file` is `docker`), or the older standalone program. */
const requireCompose = (): Need => {
  const docker = requireProgram("docker.io", "docker");
  const { exitCode } = docker.found ? Bun.spawnSync([docker.file, "compose", "version"]) : { exitCode: 1 };
  const reason = "needs Docker's plug-in compose, or docker-compose";
  return exitCode === 0 ? { ...docker, reason } : { ...requireProgram("docker-compose", "docker-compose"), reason };
};

/** Finds what the script `.ci/NAME` has prepared: a folder, a program or an address. `file` is the variable's value. */
const requirePrepared = (name: string, variable: string): Need => {
  const file = process.env[variable] ?? "";
  return { found: file !== "", reason: `needs what .ci/${name} prepares, in ${variable}`, file };
};

/** Like requirePrepared(), if `.ci/run` may still be preparing it: reading `found` waits for the script. */
const requirePreparedLater = (name: string, variable: string): Need => {
  const need = requirePrepared(name, variable);
  const folder = process.env.SLIPWAY_TEST_PREPARING;
  if (folder === undefined || !need.found) return need;
  return {
    get found() {
      return isPrepared(folder, name);
    },
    reason: need.reason,
    file: need.file,
    isPending: () => !hasEnded(folder, name),
  };
};

/**
 * The compiled program, set by the step `binary` of test/run.ts. All other steps run from source, so it is not a requirement of the
 * machine.
 */
export const compiled: Need = {
  found: (process.env.SLIPWAY_TEST_BINARY ?? "") !== "",
  reason: "needs the compiled program, in SLIPWAY_TEST_BINARY",
  file: process.env.SLIPWAY_TEST_BINARY ?? "",
};

/** Everything that a test may require of the machine. The names match the Debian packages in `.ci/run`. */
export const needs = {
  chromium: requireProgram("chromium", "chromium", "chromium-browser", "google-chrome"),
  /** The engine of chromium without its window: a third less work per story. */
  headless: requireProgram("chromium", "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
  git: requireProgram("git", "git"),
  gitLfs: requireProgram("git-lfs", "git-lfs"),
  agents: requirePreparedLater("agents", "SLIPWAY_TEST_AGENTS"),
  mcpServers: requirePreparedLater("mcp-servers", "SLIPWAY_TEST_MCP_SERVERS"),
  pythonSdks: requirePreparedLater("python-sdks", "SLIPWAY_TEST_PYTHON_SDKS"),
  generators: requirePreparedLater("generators", "SLIPWAY_TEST_GENERATORS"),
  editors: requirePrepared("editors", "SLIPWAY_TEST_EDITORS"),
  ssh: requireProgram("openssh-client", "ssh"),
  sshKeygen: requireProgram("openssh-client", "ssh-keygen"),
  sshd: requireProgram("openssh-server", "/usr/sbin/sshd", "sshd"),
  openssl: requireProgram("openssl", "openssl"),
  curl: requireProgram("curl", "curl"),
  nginx: requireProgram("nginx-light", "/usr/sbin/nginx", "nginx"),
  strace: requireProgram("strace", "strace"),
  cc: requireProgram("gcc", "gcc", "cc", "clang"),
  go: requireProgram("golang-go", "go"),
  haproxy: requireProgram("haproxy", "/usr/sbin/haproxy", "haproxy"),
  compose: requireCompose(),
  systemdAnalyze: requireProgram("systemd", "systemd-analyze"),
  node: requireProgram("nodejs", "node"),
  npm: requireProgram("npm", "npm"),
  python3: requireProgram("python3", "python3"),
  xvnc: requireProgram("tigervnc-standalone-server", "Xvnc"),
  xvfb: requireProgram("xvfb", "Xvfb"),
  x11vnc: requireProgram("x11vnc", "x11vnc"),
  xterm: requireProgram("xterm", "xterm"),
  screen: requireProgram("screen", "screen"),
  /** Lets a test start programs as another user. */
  root: { found: process.geteuid?.() === 0, reason: "needs to run as root", file: "" },
  registry: requireProgram("docker-registry", "docker-registry"),
  docker: requirePrepared("docker-engine", "SLIPWAY_TEST_DOCKER_HOST"),
  postgres: requirePrepared("postgres", "SLIPWAY_TEST_POSTGRES"),
  terraform: requirePreparedLater("terraform-tools", "SLIPWAY_TEST_TERRAFORM"),
  counterpart: requirePreparedLater("counterpart", "SLIPWAY_TEST_COUNTERPART"),
  minisign: requireProgram("minisign", "minisign"),
  nfpm: requirePreparedLater("nfpm", "SLIPWAY_TEST_NFPM"),
  restic: requireProgram("restic", "restic"),
  versitygw: requirePreparedLater("versitygw", "SLIPWAY_TEST_VERSITYGW"),
} as const;

/** Registers a test that runs only if all its needs are met. `timeout`: for a test that takes longer than the default limit. */
export const testNeeding = (
  needed: readonly Need[],
  title: string,
  run: () => Promise<void>,
  timeout?: number,
): void => {
  const missing = needed.filter((need) => !need.found).map((need) => need.reason);
  if (missing.length === 0) test(title, run, timeout);
  else test.skip(`${title} (skipped: ${missing.join(", ")})`, run);
};

/** Returns what this machine lacks, as lines for the start of a run: which tests are skipped, and how to install the programs. */
export const listMissingNeeds = (): string[] => {
  const missing = Object.values(needs as Record<string, Need>).filter((need) => !need.isPending?.() && !need.found);
  if (missing.length === 0) return [];
  const packages = [...new Set(missing.flatMap(({ debian }) => debian ?? []))].sort();
  return [
    "Some tests are skipped here:",
    ...new Set(missing.map(({ reason }) => `  ${reason}`)),
    ...(packages.length > 0 ? [`Install the programs with: apt-get install ${packages.join(" ")}`] : []),
    "`.ci/run` installs and starts all of them, as root on Debian.",
  ];
};
