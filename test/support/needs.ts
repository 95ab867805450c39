// For tests that want a program which is not on every machine: they run where it is found, and elsewhere they are counted as
// skipped with the reason in their title, which test/run.ts prints. `.ci/run` installs or starts all of them, so that there none is
// skipped.
import { test } from "bun:test";

export interface Need {
  readonly found: boolean;
  /** To finish the sentence "skipped: ...". */
  readonly reason: string;
  /** The program's path; empty when it is missing. */
  readonly file: string;
}

const program = (...names: string[]): Need => {
  const file = names.map((name) => Bun.which(name)).find((path) => path !== null) ?? "";
  return { found: file !== "", reason: `needs the program ${names[0]}`, file };
};

/** What reads compose files: Docker's plug-in (`file` is then the program `docker`), or the program of its own that came before it. */
const compose = (): Need => {
  const docker = program("docker");
  const { exitCode } = docker.found ? Bun.spawnSync([docker.file, "compose", "version"]) : { exitCode: 1 };
  const reason = "needs Docker's plug-in compose, or docker-compose";
  return exitCode === 0 ? { ...docker, reason } : { ...program("docker-compose"), reason };
};

/** The engine that `.ci/docker-engine start` has made, with its images; `file` is its address. */
const engine = (): Need => {
  const file = process.env.SLIPWAY_TEST_DOCKER_HOST ?? "";
  return { found: file !== "", reason: "needs the engine of .ci/docker-engine in SLIPWAY_TEST_DOCKER_HOST", file };
};

/** The server that `.ci/postgres start` has made; `file` is its address. */
const postgres = (): Need => {
  const file = process.env.SLIPWAY_TEST_POSTGRES ?? "";
  return { found: file !== "", reason: "needs the server of .ci/postgres in SLIPWAY_TEST_POSTGRES", file };
};

/** Terraform with the provider `coder`, in the folder that `.ci/terraform-tools` has filled; `file` is that folder. */
const terraform = (): Need => {
  const file = process.env.SLIPWAY_TEST_TERRAFORM ?? "";
  return { found: file !== "", reason: "needs the folder of .ci/terraform-tools in SLIPWAY_TEST_TERRAFORM", file };
};

/** The Go program of test/tailnet/counterpart, as `.ci/counterpart` has built it. */
const counterpart = (): Need => {
  const file = process.env.SLIPWAY_TEST_COUNTERPART ?? "";
  return { found: file !== "", reason: "needs the program of .ci/counterpart in SLIPWAY_TEST_COUNTERPART", file };
};

/** Everything a test may want of the machine. The names match the Debian packages in `.ci/run`. */
export const needs = {
  chromium: program("chromium", "chromium-browser", "google-chrome"),
  /** The same engine without what a window wants: a third less work for each story. */
  headless: program("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
  git: program("git"),
  ssh: program("ssh"),
  sshKeygen: program("ssh-keygen"),
  sshd: program("/usr/sbin/sshd", "sshd"),
  openssl: program("openssl"),
  curl: program("curl"),
  nginx: program("/usr/sbin/nginx", "nginx"),
  strace: program("strace"),
  cc: program("gcc", "cc", "clang"),
  go: program("go"),
  haproxy: program("/usr/sbin/haproxy", "haproxy"),
  compose: compose(),
  systemdAnalyze: program("systemd-analyze"),
  node: program("node"),
  npm: program("npm"),
  python3: program("python3"),
  xvnc: program("Xvnc"),
  xvfb: program("Xvfb"),
  x11vnc: program("x11vnc"),
  xterm: program("xterm"),
  screen: program("screen"),
  /** To start programs as another user. */
  root: { found: process.geteuid?.() === 0, reason: "needs to run as root", file: "" },
  docker: engine(),
  postgres: postgres(),
  terraform: terraform(),
  counterpart: counterpart(),
} as const;

/** A test that runs only where everything it needs is there. `timeout` is in milliseconds. */
export const testNeeding = (
  wanted: readonly Need[],
  title: string,
  run: () => Promise<void>,
  timeout = 60_000,
): void => {
  const missing = wanted.filter((need) => !need.found).map((need) => need.reason);
  if (missing.length === 0) test(title, run, timeout);
  else test.skip(`${title} (skipped: ${missing.join(", ")})`, run);
};
