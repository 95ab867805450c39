// The program's entry point: arguments -> verb -> exit code. The only file that uses signals, the environment and process.exit; all other
// code receives what it needs.
import { readFileSync, writeSync } from "node:fs";
import { systemClock } from "#base/clock.ts";
import { eraseVariables } from "#base/erase-variables.ts";
import { configureLogging, log } from "#base/log.ts";
import { protectMemory } from "#base/system/protect-memory.ts";
import { UsageError } from "#base/usage-error.ts";
import { escapeHidden } from "#base/visible-text.ts";
import { type Globals, loadHeaders, readGlobals } from "./cli/globals.ts";
import { findSubVerb } from "./cli/group.ts";
import { formatProgramHelp, formatUnknownVerb, formatVerbHelp } from "./cli/help.ts";
import { Output, OutputClosedError } from "./cli/output.ts";
import { createSignalListener } from "./cli/signals.ts";
import { createProcessStreams } from "./cli/streams.ts";
import { EXIT, type VerbInput } from "./cli/verb.ts";
import { VERBS } from "./cli/verbs.ts";

const LINGER_MS = 300;
/** How long a stopping program waits for the reader of its output. */
const STOP_TIMEOUT_MS = 1_000;

const output = new Output(process.stdout);
const errors = new Output(process.stderr, { mayDrop: true });
const stopping = new AbortController();
// If the event loop becomes empty while a verb still waits, that is a failure.
process.exitCode = EXIT.failed;
listenForSignals();
listenForCrashes();
compileAsUsualLater();
process.exit(await flush(await main(process.argv.slice(2))));

async function main(argv: readonly string[]): Promise<number> {
  let call = "";
  try {
    const { globals, rest } = readGlobals(argv);
    const [name = "help", ...own] = rest;
    if (name === "help" || name === "--help" || name === "-h") return help(own[0], own.slice(1));
    const verb = VERBS.find((one) => one.name === (name === "--version" ? "version" : name));
    if (!verb) return reportUnknown(name);
    // Arguments after `--` belong to another program.
    const ours = own.includes("--") ? own.slice(0, own.indexOf("--")) : own;
    if (ours.includes("--help") || ours.includes("-h")) return help(verb.name, ours);
    call = [verb.name, findSubVerb(verb.subcommands ?? [], own)?.word.name].filter(Boolean).join(" ");
    const { run } = await verb.load();
    return await run(await verbInput(own, globals));
  } catch (error) {
    return await reportFailure(call, error);
  }
}

async function verbInput(argv: string[], globals: Globals): Promise<VerbInput> {
  const { url, token, configFolder, isVerbose } = globals;
  // A copy: secrets are removed from the process's environment, but the verb still needs them.
  const env = { ...process.env, ...(url ? { SLIPWAY_URL: url } : {}), ...(token ? { SLIPWAY_TOKEN: token } : {}) };
  return {
    argv,
    env,
    headers: await loadHeaders(globals, env),
    ...(configFolder === undefined ? {} : { configFolder }),
    isVerbose,
    parentPid: process.ppid,
    signal: stopping.signal,
    clock: systemClock,
    onReload: (listener) => void process.on("SIGHUP", listener),
    forgetVariables: (names) => {
      eraseVariables(names);
      for (const name of names) delete process.env[name];
    },
    protectMemory,
    isTerminal: process.stderr.isTTY === true,
    streams: createProcessStreams(output, errors),
    readFile: (path) => readFileSync(path, "utf8"),
    print,
    printError,
  };
}

function help(name: string | undefined, argv: readonly string[]): number {
  const isOfAll = name === "--all";
  const verb = VERBS.find((one) => one.name === name);
  if (name !== undefined && !verb && !isOfAll) return reportUnknown(name);
  print(verb ? formatVerbHelp(verb, argv) : formatProgramHelp(VERBS, isOfAll));
  return EXIT.ok;
}

function reportUnknown(name: string): number {
  printError(formatUnknownVerb(VERBS, name));
  return EXIT.usage;
}

async function reportFailure(verb: string, error: unknown): Promise<number> {
  const call = `slipway ${verb}`.trimEnd();
  if (error instanceof UsageError) {
    const lines = error.problems.map((problem) => `  ${problem.name} (${problem.from}): ${problem.detail}`);
    const sentence = error.sentence ?? `these arguments or settings are invalid:\n${lines.join("\n")}`;
    printError(`${call}: ${sentence}\n\`${verb ? call : "slipway"} --help\` explains more.\n`);
    return EXIT.usage;
  }
  if (stopping.signal.aborted) return EXIT.interrupted;
  const { explainMachineError: machineReason } = await import("./cli/reason.ts");
  const reason = machineReason(error) ?? (error instanceof Error ? (error.stack ?? error.message) : String(error));
  printError(`${call}: ${reason}\n`);
  return EXIT.failed;
}

function listenForSignals(): void {
  const listener = createSignalListener(systemClock, {
    stop: (signal) => stopping.abort(new Error(`stopped by ${signal}`)),
    end: () => process.exit(EXIT.interrupted),
  });
  process.on("SIGINT", listener);
  process.on("SIGTERM", listener);
}

// The compiled program delays further JIT compilation at its start (src/build.ts), which suits short-lived verbs. A verb that is still
// running now runs longer, so the normal policy is restored.
function compileAsUsualLater(): void {
  systemClock.after(LINGER_MS, () => Bun.unsafe.setJITPolicy(1));
}

// After an uncaught error the state is unreliable. Acknowledged writes are on disk, so the process stops and is restarted.
function listenForCrashes(): void {
  // The reader of the output may close it (`slipway help | head -1`), which must not stop a server. Output records the error.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  const exitOnCrash = (error: unknown): void => {
    // Synchronous: nothing else may run in this process.
    const write = (text: string): void => void writeSync(process.stderr.fd, text);
    configureLogging({ level: "error", format: process.stderr.isTTY ? "text" : "json", write });
    log("process").error("stopped by an unhandled error", { error });
    process.exit(EXIT.failed);
  };
  process.on("uncaughtException", exitOnCrash);
  process.on("unhandledRejection", exitOnCrash);
}

function print(text: string): void {
  output.print(`${escapeHidden(text)}\n`);
}

function printError(text: string): void {
  errors.print(text);
}

/** Waits until all output is written, so that exiting does not truncate it. Returns the exit code. */
async function flush(code: number): Promise<number> {
  const flushed = Promise.all([output.flush(), errors.flush()]);
  const wasStopped = stopping.signal.aborted;
  const stopped = new Promise<void>((done) => {
    if (wasStopped) systemClock.after(STOP_TIMEOUT_MS, done);
    else stopping.signal.addEventListener("abort", () => done(), { once: true });
  });
  await Promise.race([flushed, stopped]);
  if (stopping.signal.aborted && !wasStopped) return EXIT.interrupted;
  const { failure } = output;
  // A server that was asked to stop has succeeded even if its output was closed.
  const isNoMatter = failure instanceof OutputClosedError && wasStopped;
  if (failure === undefined || isNoMatter) return code;
  if (!(failure instanceof OutputClosedError)) {
    printError(`slipway: standard output cannot be written: ${failure.message}\n`);
    await errors.flush();
  }
  return code || EXIT.failed;
}
