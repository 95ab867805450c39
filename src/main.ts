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

/** A verb that runs longer than this gets the normal JIT policy. */
const SHORT_RUN_MS = 300;
/** How long a stopping program waits for the reader of its output. */
const STOP_TIMEOUT_MS = 1_000;

const output = new Output(process.stdout);
const errors = new Output(process.stderr, { mayDrop: true });
const stopping = new AbortController();
// Used if the event loop becomes empty while a verb still waits.
process.exitCode = EXIT.failed;
listenForSignals();
listenForCrashes();
restoreJitPolicyLater();
process.exit(await flush(await main(process.argv.slice(2))));

async function main(argv: readonly string[]): Promise<number> {
  let call = "";
  try {
    const { globals, rest } = readGlobals(argv);
    const [name = "help", ...verbArgs] = rest;
    if (name === "help" || name === "--help" || name === "-h") return printHelp(verbArgs[0], verbArgs.slice(1));
    const verb = VERBS.find((one) => one.name === (name === "--version" ? "version" : name));
    if (!verb) return reportUnknown(name);
    // Arguments after `--` belong to another program.
    const flags = verbArgs.includes("--") ? verbArgs.slice(0, verbArgs.indexOf("--")) : verbArgs;
    if (flags.includes("--help") || flags.includes("-h")) return printHelp(verb.name, flags);
    call = [verb.name, findSubVerb(verb.subcommands ?? [], verbArgs)?.word.name].filter(Boolean).join(" ");
    const { run } = await verb.load();
    return await run(await createVerbInput(verbArgs, globals));
  } catch (error) {
    return await reportFailure(call, error);
  }
}

async function createVerbInput(argv: string[], globals: Globals): Promise<VerbInput> {
  const { url, token, configFolder, isVerbose } = globals;
  // A copy, because secrets are removed from the process's environment while the verb still needs them.
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

function printHelp(name: string | undefined, argv: readonly string[]): number {
  const showsAll = name === "--all";
  const verb = VERBS.find((one) => one.name === name);
  if (name !== undefined && !verb && !showsAll) return reportUnknown(name);
  print(verb ? formatVerbHelp(verb, argv) : formatProgramHelp(VERBS, showsAll));
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
  const { explainMachineError } = await import("./cli/reason.ts");
  const reason =
    explainMachineError(error) ?? (error instanceof Error ? (error.stack ?? error.message) : String(error));
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

// The compiled program delays JIT compilation at its start (src/build.ts), which makes short-lived verbs faster. Verbs that run longer need
// the normal policy.
function restoreJitPolicyLater(): void {
  systemClock.after(SHORT_RUN_MS, () => Bun.unsafe.setJITPolicy(1));
}

// After an uncaught error the state is unreliable. Acknowledged writes are on disk, so the process stops and is restarted.
function listenForCrashes(): void {
  // If the reader of the output closes it (`slipway help | head -1`), a server must not stop. `Output` records the error.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  const exitOnCrash = (error: unknown): void => {
    // Writes synchronously, because no other code may run in this process.
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
  const stopTimeout = new Promise<void>((done) => {
    if (wasStopped) systemClock.after(STOP_TIMEOUT_MS, done);
    else stopping.signal.addEventListener("abort", () => done(), { once: true });
  });
  await Promise.race([flushed, stopTimeout]);
  if (stopping.signal.aborted && !wasStopped) return EXIT.interrupted;
  const { failure } = output;
  // A server that was asked to stop has succeeded even if its output was closed.
  const canIgnore = failure instanceof OutputClosedError && wasStopped;
  if (failure === undefined || canIgnore) return code;
  if (!(failure instanceof OutputClosedError)) {
    printError(`slipway: standard output cannot be written: ${failure.message}\n`);
    await errors.flush();
  }
  return code || EXIT.failed;
}
