// The program behind `npm start` and `npm test`, in plain Node (20 or newer) without packages. Installs the version of Bun that is pinned in
// package.json, and the packages of bun.lock if they have changed (only those that the server needs, unless development tools are installed).
// Then starts the server or the tests: arguments, signals and the exit code are passed through unchanged (rule RP-5).
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, isAbsolute, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MODULES = join(ROOT, "node_modules");
const RUNTIME = join(MODULES, ".bun-runtime");
const STAMP = join(MODULES, ".slipway-install");
const TARGETS = { serve: ["src/main.ts", "serve"], test: ["test/run.ts"] };

const manifest = readFileSync(join(ROOT, "package.json"), "utf8");
const { devDependencies } = JSON.parse(manifest);
const pinned = devDependencies.bun;

const [verb = "", ...args] = process.argv.slice(2);
const target = TARGETS[verb];
if (!target) stop(`bootstrap: expected ${Object.keys(TARGETS).join(" or ")}, got "${verb}"`, 2);

const bun = findBun() ?? fetchBun();
installPackages(bun);
linkBun(bun);
const [script, ...first] = target;
become(bun, ["--no-env-file", join(ROOT, script), ...first, ...args]);

/** A Bun that is here already: the one running this, the one on the PATH, or one that an install left. */
function findBun() {
  if (process.versions.bun && atLeastPinned(process.versions.bun)) return process.execPath;
  const places = [installedIn(MODULES), installedIn(join(RUNTIME, "node_modules"))].flat();
  return ["bun", ...places].find((file) => versionOf(file) === pinned);
}

// The package's own launcher is only a note until its install script has run, and npm may be told not to run it. The platform
// package alongside it holds the real program either way.
function installedIn(modules) {
  const platforms = join(modules, "@oven");
  const found = existsSync(platforms) ? readdirSync(platforms) : [];
  const name = process.platform === "win32" ? "bun.exe" : "bun";
  const files = [join(modules, "bun", "bin", "bun.exe"), ...found.map((one) => join(platforms, one, "bin", name))];
  return files.filter((file) => existsSync(file));
}

function versionOf(file) {
  const { status, stdout } = spawnSync(file, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return status === 0 ? stdout.trim() : undefined;
}

function atLeastPinned(version) {
  const [have, need] = [version, pinned].map((text) => text.split(/[.-]/).map(Number));
  if (have[0] !== need[0]) return false;
  return have[1] !== need[1] ? have[1] > need[1] : have[2] >= need[2];
}

function fetchBun() {
  say(`fetching Bun ${pinned} with npm (once)`);
  mkdirSync(RUNTIME, { recursive: true });
  const flags = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  const done = npm(["install", "--prefix", RUNTIME, ...flags, `bun@${pinned}`], "inherit");
  if (done.status !== 0) stop("bootstrap: npm could not fetch Bun; see above", done.status ?? 1);
  const file = installedIn(join(RUNTIME, "node_modules")).find((one) => versionOf(one) === pinned);
  return file ?? stop(`bootstrap: the npm package bun@${pinned} has no program that runs on this machine`, 1);
}

/** Returns whether development tools are installed, which must stay. */
function hasTools() {
  return Object.keys(devDependencies).some((name) => existsSync(join(MODULES, name, "package.json")));
}

function installPackages(bun) {
  const hash = createHash("sha256")
    .update(manifest)
    .update(readFileSync(join(ROOT, "bun.lock")))
    .digest("hex");
  const stamp = existsSync(STAMP) ? readFileSync(STAMP, "utf8") : "";
  // Without what only tests and builds need, which is two thirds of the bytes.
  const few = verb === "serve" && (stamp.endsWith(" few") || !hasTools());
  if (stamp === hash || (few && stamp === `${hash} few`)) return;
  say("installing packages (only when they changed)");
  const env = { ...process.env, ...registry() };
  const flags = ["--frozen-lockfile", ...(few ? ["--production", "--omit=peer"] : [])];
  const done = spawnSync(bun, ["install", ...flags], { cwd: ROOT, env, stdio: ["ignore", 2, 2] });
  if (done.status !== 0) stop("bootstrap: the packages could not be installed; see above", done.status ?? 1);
  writeFileSync(STAMP, few ? `${hash} few` : hash);
}

/** The README's commands call it there, where an install of everything would put it. */
function linkBun(file) {
  const bin = join(MODULES, ".bin");
  const link = join(bin, "bun");
  if (process.platform === "win32" || existsSync(link)) return;
  const folders = (process.env.PATH ?? "").split(delimiter);
  const program = isAbsolute(file) ? file : folders.map((one) => join(one, file)).find((one) => existsSync(one));
  if (!program) return;
  mkdirSync(bin, { recursive: true });
  // One that led to a program that no longer exists.
  rmSync(link, { force: true });
  symlinkSync(program.startsWith(MODULES) ? relative(bin, program) : program, link);
}

// npm may know its registry from files that Bun does not read.
function registry() {
  if (process.versions.bun) return {};
  const { status, stdout } = npm(["config", "get", "registry"], "pipe");
  const url = status === 0 ? stdout.trim() : "";
  return /^https?:/.test(url) ? { npm_config_registry: url } : {};
}

function npm(command, output) {
  const cli = process.env.npm_execpath ?? "";
  const own = /npm-cli\.c?js$/.test(cli) && !process.versions.bun;
  const [file, before] = own ? [process.execPath, [cli]] : ["npm", []];
  const stdio = ["ignore", output === "inherit" ? 2 : "pipe", output === "inherit" ? 2 : "ignore"];
  return spawnSync(file, [...before, ...command], {
    cwd: ROOT,
    encoding: "utf8",
    stdio,
    shell: process.platform === "win32" && !own,
  });
}

function become(file, argv) {
  // Listening begins before the child does: a signal in between would end only this process. In a terminal the child hears
  // Ctrl-C on its own as well; src/cli/signals.ts takes both for one wish.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  const child = spawn(file, argv, { stdio: "inherit" });
  child.on("error", (error) => stop(`bootstrap: ${error.message}`, 1));
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}

// Progress goes to standard error: standard output belongs to the server.
function say(text) {
  process.stderr.write(`slipway: ${text}\n`);
}

function stop(text, code) {
  process.stderr.write(`${text}\n`);
  process.exit(code);
}
