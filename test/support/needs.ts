// Tests that need a program which is not on every machine. They run where it is found and are skipped elsewhere, with the reason in their
// title, which test/run.ts prints. `.ci/run` installs or starts all such programs, so that nothing is skipped there.
import { test } from "bun:test";
import { scaled } from "./pace.ts";
import { hasEnded, isPrepared } from "./run/preparing.ts";

export interface Need {
  readonly found: boolean;
  /** The Debian package that contains it; absent if there is none. */
  readonly debian?: string;
  /** Completes the sentence "skipped: ...". */
  readonly reason: string;
  /** The program's path; empty if missing. */
  readonly file: string;
  /** Returns true if `found` has to wait for a script of `.ci`. */
  readonly isPending?: () => boolean;
}

const program = (debian: string, ...names: string[]): Need => {
  const file = names.map((name) => Bun.which(name)).find((path) => path !== null) ?? "";
  return { found: file !== "", reason: `needs the program ${names[0]}`, file, debian };
};

/** A program for compose files: Docker's plugin (then `file` is `docker`), or the older standalone program. */
const compose = (): Need => {
  const docker = program("docker.io", "docker");
  const { exitCode } = docker.found ? Bun.spawnSync([docker.file, "compose", "version"]) : { exitCode: 1 };
  const reason = "needs Docker's plug-in compose, or docker-compose";
  return exitCode === 0 ? { ...docker, reason } : { ...program("docker-compose", "docker-compose"), reason };
};

/** What the script `.ci/NAME` has prepared: a folder, a program or an address. `file` is the variable's value. */
const prepared = (name: string, variable: string): Need => {
  const file = process.env[variable] ?? "";
  return { found: file !== "", reason: `needs what .ci/${name} prepares, in ${variable}`, file };
};

/** Like prepared(), if `.ci/run` may still be preparing it: reading `found` waits for the script. */
const preparedLater = (name: string, variable: string): Need => {
  const need = prepared(name, variable);
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
  chromium: program("chromium", "chromium", "chromium-browser", "google-chrome"),
  /** The same engine without windowing: a third less work per story. */
  headless: program("chromium", "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
  git: program("git", "git"),
  gitLfs: program("git-lfs", "git-lfs"),
  agents: preparedLater("agents", "SLIPWAY_TEST_AGENTS"),
  mcpServers: preparedLater("mcp-servers", "SLIPWAY_TEST_MCP_SERVERS"),
  pythonSdks: preparedLater("python-sdks", "SLIPWAY_TEST_PYTHON_SDKS"),
  generators: preparedLater("generators", "SLIPWAY_TEST_GENERATORS"),
  editors: prepared("editors", "SLIPWAY_TEST_EDITORS"),
  ssh: program("openssh-client", "ssh"),
  sshKeygen: program("openssh-client", "ssh-keygen"),
  sshd: program("openssh-server", "/usr/sbin/sshd", "sshd"),
  openssl: program("openssl", "openssl"),
  curl: program("curl", "curl"),
  nginx: program("nginx-light", "/usr/sbin/nginx", "nginx"),
  strace: program("strace", "strace"),
  cc: program("gcc", "gcc", "cc", "clang"),
  go: program("golang-go", "go"),
  haproxy: program("haproxy", "/usr/sbin/haproxy", "haproxy"),
  compose: compose(),
  systemdAnalyze: program("systemd", "systemd-analyze"),
  node: program("nodejs", "node"),
  npm: program("npm", "npm"),
  python3: program("python3", "python3"),
  xvnc: program("tigervnc-standalone-server", "Xvnc"),
  xvfb: program("xvfb", "Xvfb"),
  x11vnc: program("x11vnc", "x11vnc"),
  xterm: program("xterm", "xterm"),
  screen: program("screen", "screen"),
  /** To start programs as another user. */
  root: { found: process.geteuid?.() === 0, reason: "needs to run as root", file: "" },
  registry: program("docker-registry", "docker-registry"),
  docker: prepared("docker-engine", "SLIPWAY_TEST_DOCKER_HOST"),
  postgres: prepared("postgres", "SLIPWAY_TEST_POSTGRES"),
  terraform: preparedLater("terraform-tools", "SLIPWAY_TEST_TERRAFORM"),
  counterpart: preparedLater("counterpart", "SLIPWAY_TEST_COUNTERPART"),
  minisign: program("minisign", "minisign"),
  nfpm: preparedLater("nfpm", "SLIPWAY_TEST_NFPM"),
  restic: program("restic", "restic"),
  versitygw: preparedLater("versitygw", "SLIPWAY_TEST_VERSITYGW"),
} as const;

/** Returns a test that runs only if all its needs are met. `timeout` is in milliseconds. */
export const testNeeding = (
  wanted: readonly Need[],
  title: string,
  run: () => Promise<void>,
  timeout = 60_000,
): void => {
  const missing = wanted.filter((need) => !need.found).map((need) => need.reason);
  if (missing.length === 0) test(title, run, scaled(timeout));
  else test.skip(`${title} (skipped: ${missing.join(", ")})`, run);
};

/** Returns what this machine lacks, as lines for the start of a run: what is skipped, and how to install it. */
export const missingNeeds = (): string[] => {
  const missing = Object.values(needs as Record<string, Need>).filter((need) => !need.isPending?.() && !need.found);
  if (missing.length === 0) return [];
  const packages = [...new Set(missing.flatMap(({ debian }) => debian ?? []))].sort();
  return [
    "Some tests are skipped here:",
    ...new Set(missing.map(({ reason }) => `  ${reason}`)),
    ...(packages.length > 0 ? [`Install the programs with: apt-get install ${packages.join(" ")}`] : []),
    "`.ci/run` installs and starts all of it, as root on Debian.",
  ];
};
