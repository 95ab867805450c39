// Runs one Terraform command in its own process group with its output in files, so that it can still write its state if the server dies.
// Reads the output while it grows. Interrupts a command that must end, and kills it after a grace period (facts/terraform 1.23).
import {
  constants,
  existsSync,
  fstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
} from "node:fs";
import { type FileHandle, open, rm, writeFile } from "node:fs/promises";
import { constants as system } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { LineBuffer } from "#base/line-buffer.ts";
import { nextTurn, pause } from "#base/retry.ts";
import { findChildMark, findMark, isAlive, type ProcessMark } from "../local/process-table.ts";
import { CommandPriority, DETACHED } from "./cpu-priority.ts";
import { readGroupCpuMs } from "./cpu-time.ts";
import { endOrphans } from "./orphan-processes.ts";

export type CommandOptions = {
  readonly program: string;
  readonly args: readonly string[];
  /** The session's folder, which contains the output and the process mark. */
  readonly folder: string;
  /** The working directory. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Milliseconds after which the command is interrupted as if it were canceled. */
  readonly limit: number;
  /**
   * If true, `limit` applies to the CPU time of the program and its children, and the wall-clock limit is ten times as long. A command is
   * then not interrupted only because the machine is busy.
   */
  readonly limitsCpuTime?: boolean;
  /** Milliseconds that an interrupted command may take to end before it is killed. */
  readonly grace: number;
  /** Whether the command runs with a lower priority than the server. Default: true. */
  readonly isLowPriority?: boolean;
  /** Maximum bytes of output. A program that prints more is interrupted. */
  readonly maxOutputBytes?: number;
  /**
   * Receives each complete line of standard output and standard error, in order. A returned promise delays the next line. If absent, the
   * result contains the standard output.
   */
  readonly line?: OnLine;
};

export type OnLine = (text: string) => void | Promise<void>;

export type CommandResult = {
  readonly code: number;
  /** The signal that killed the command, such as SIGKILL. */
  readonly killedBy: string | undefined;
  /** Standard output; empty if the lines were passed to `line`. */
  readonly output: string;
  /** The end of standard error. */
  readonly errors: string;
  /** True if the command was interrupted because of `limit`, or because of `maxOutputBytes`. */
  readonly exceededLimit: boolean;
  readonly exceededOutput: boolean;
};

const POLL_MS = 20;
/** Wall-clock limit as a multiple of a CPU time limit, since a waiting program uses no CPU. */
const CLOCK_FACTOR = 10;
/** Poll interval until the command's priority is lowered. */
const INITIAL_POLL_MS = 2;
/** Maximum bytes of output of one command. */
export const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** Bytes of output processed in one turn of the event loop. */
const CHUNK_BYTES = 64 * 1024;
const MAX_ERROR_CHARS = 4096;
const MARK_FILE = "running.json";
/**
 * O_NOFOLLOW: a template's code may have created a link. O_NOATIME: an update of the access time would wait for a disk that is busy with
 * the output.
 */
const APPEND_FLAGS =
  constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | (constants.O_NOATIME ?? 0);

/**
 * Runs the command. Resolves or rejects only after the process has ended. Rejects with errors that `line` throws. A command that fails is
 * not an error: its result has the exit code.
 */
export const runCommand = async (options: CommandOptions): Promise<CommandResult> => {
  const { folder, clock, signal, line, maxOutputBytes = MAX_OUTPUT_BYTES } = options;
  // The files keep the output of earlier commands, because truncating them would wait for a disk that is still writing it.
  await using out = await open(join(folder, "stdout"), APPEND_FLAGS, 0o600);
  await using err = await open(join(folder, "stderr"), APPEND_FLAGS, 0o600);
  const output = new Output(out, err, maxOutputBytes);
  const markFile = join(folder, MARK_FILE);
  using priority = new CommandPriority(options.isLowPriority);
  try {
    const child = Bun.spawn([...priority.toPrefix(options.args[0]), options.program, ...options.args], {
      cwd: options.cwd,
      // orphan-processes.ts recognizes the programs of this run by PWD, even if they leave the process group.
      env: { ...options.env, PWD: options.cwd },
      stdin: "ignore",
      stdout: out.fd,
      stderr: err.fd,
      detached: DETACHED,
    });
    const processMark = findChildMark(child.pid);
    priority.lower(child.pid);
    if (processMark) await writeFile(markFile, JSON.stringify(processMark), { mode: 0o600 });
    let hasExited = false;
    void child.exited.then(() => {
      hasExited = true;
    });
    const readers = line ? output.createReaders(line) : [];
    const stopper = new CommandStopper(child.pid, options);
    /** The first error that `line` has thrown. The program is then interrupted as if it were canceled. */
    let readFailure: { readonly error: unknown } | undefined;
    const readOutput = async (isLast = false): Promise<void> => {
      try {
        for (const reader of readers) await reader.read(isLast);
      } catch (error) {
        readFailure ??= { error };
      }
    };
    while (!hasExited) {
      await Promise.race([child.exited, pause(clock, priority.isSettled ? POLL_MS : INITIAL_POLL_MS)]);
      if (!hasExited) priority.lower(child.pid);
      if (!readFailure) await readOutput();
      stopper.checkLimits(signal.aborted || readFailure !== undefined, output.isTooLarge);
      if (stopper.isInterrupted) await output.truncate();
    }
    if (!readFailure) await readOutput(true);
    const killedBy = child.signalCode?.toString() ?? toSignal(child.exitCode ?? 1);
    await stopper.onExit(processMark, killedBy !== undefined || (child.exitCode ?? 1) > FAILED_EXIT_CODE);
    if (readFailure) throw readFailure.error;
    return {
      code: child.exitCode ?? 1,
      killedBy,
      output: line ? "" : output.text(),
      errors: output.errors.slice(-MAX_ERROR_CHARS),
      exceededLimit: stopper.exceededLimit,
      exceededOutput: stopper.exceededOutput,
    };
  } finally {
    await rm(markFile, { force: true });
  }
};

/** Interrupts the program, which then finishes the operations in progress. Kills its process group if it does not end in time. */
class CommandStopper {
  exceededLimit = false;
  exceededOutput = false;
  readonly #pid: number;
  readonly #options: CommandOptions;
  readonly #startedAt: number;
  #interruptedAt: number | undefined;
  #isKilled = false;

  constructor(pid: number, options: CommandOptions) {
    this.#pid = pid;
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
  }

  get isInterrupted(): boolean {
    return this.#interruptedAt !== undefined;
  }

  checkLimits(isCanceled: boolean, isOutputTooLarge: boolean): void {
    const { clock, grace } = this.#options;
    const now = clock.monotonic();
    if (this.#interruptedAt === undefined) {
      this.exceededLimit = this.#exceedsLimit(now - this.#startedAt);
      this.exceededOutput = isOutputTooLarge;
      if (!isCanceled && !this.exceededLimit && !this.exceededOutput) return;
      this.#interruptedAt = now;
      sendSignal(this.#pid, "SIGINT");
    } else if (now - this.#interruptedAt > grace && !this.#isKilled) {
      this.#isKilled = true;
      sendSignal(-this.#pid, "SIGKILL");
      // The process may not have its own group yet.
      sendSignal(this.#pid, "SIGKILL");
    }
  }

  #exceedsLimit(elapsedMs: number): boolean {
    const { limit, limitsCpuTime = false } = this.#options;
    if (elapsedMs <= limit) return false;
    if (!limitsCpuTime || elapsedMs > CLOCK_FACTOR * limit) return true;
    const cpuMs = readGroupCpuMs(this.#pid);
    return cpuMs === undefined || cpuMs > limit;
  }

  /**
   * Kills the remaining processes of the group, such as a local-exec shell. Does nothing after an apply that exited normally, because an
   * apply may start the workspace's processes.
   */
  async onExit(mark: ProcessMark | undefined, wasKilled: boolean): Promise<void> {
    const { args, folder } = this.#options;
    const mayKeepRunning = args[0] === "apply" && this.#interruptedAt === undefined && !wasKilled;
    if (mayKeepRunning) return;
    sendSignal(-this.#pid, "SIGKILL");
    // Only a plan and an apply run programs of the template.
    if (mark && (args[0] === "plan" || args[0] === "apply")) await endOrphans(folder, mark);
  }
}

/** The exit code of a failed apply; a crash has a higher one. */
const FAILED_EXIT_CODE = 1;

/** Returns the signal for an exit code of 128 + N, with which a shell reports that signal N killed its program; otherwise undefined. */
const toSignal = (code: number): string | undefined =>
  Object.entries(system.signals).find(([, number]) => code === 128 + number)?.[0];

export const describeKill = (command: string, signal: string): string =>
  `${command} was killed by ${signal}${signal === "SIGKILL" ? "; the machine may have run out of memory. Check its kernel log" : ""}.`;

const sendSignal = (pid: number, signal: "SIGINT" | "SIGKILL"): void => {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has just ended.
  }
};

/** The output of one command, in files that earlier commands have also written to. */
class Output {
  readonly #out: FileHandle;
  readonly #err: FileHandle;
  readonly #outFrom: number;
  readonly #errFrom: number;
  readonly #maxBytes: number;

  constructor(out: FileHandle, err: FileHandle, maxOutputBytes: number) {
    this.#out = out;
    this.#err = err;
    this.#maxBytes = maxOutputBytes;
    this.#outFrom = fstatSync(out.fd).size;
    this.#errFrom = fstatSync(err.fd).size;
  }

  createReaders(line: OnLine): GrowingFile[] {
    return [
      new GrowingFile(this.#out.fd, this.#outFrom, line, this.#maxBytes),
      new GrowingFile(this.#err.fd, this.#errFrom, line, this.#maxBytes),
    ];
  }

  get isTooLarge(): boolean {
    return fstatSync(this.#out.fd).size - this.#outFrom + fstatSync(this.#err.fd).size - this.#errFrom > this.#maxBytes;
  }

  /** Truncates the output, so that a program that keeps printing after the interrupt cannot fill the disk. */
  async truncate(): Promise<void> {
    for (const file of [this.#out, this.#err]) if (fstatSync(file.fd).size > this.#maxBytes) await file.truncate();
  }

  text(): string {
    return readFrom(this.#out.fd, this.#outFrom);
  }

  /** The end of standard error. */
  get errors(): string {
    const { size } = fstatSync(this.#err.fd);
    return readFrom(this.#err.fd, Math.max(this.#errFrom, size - 4 * MAX_ERROR_CHARS));
  }
}

class GrowingFile {
  readonly #file: number;
  readonly #line: OnLine;
  readonly #decoder = new TextDecoder();
  readonly #end: number;
  #position: number;
  readonly #buffer = new LineBuffer();

  constructor(file: number, from: number, line: OnLine, maxOutputBytes: number) {
    this.#file = file;
    this.#position = from;
    this.#end = from + maxOutputBytes;
    this.#line = line;
  }

  async read(isLast = false): Promise<void> {
    // This runs fifty times a second, mostly without new output.
    if (!isLast && fstatSync(this.#file).size === this.#position) return;
    const buffer = new Uint8Array(CHUNK_BYTES);
    for (let count = CHUNK_BYTES; count === CHUNK_BYTES && this.#position < this.#end; ) {
      count = readSync(this.#file, buffer, 0, CHUNK_BYTES, this.#position);
      this.#position += count;
      const lines = this.#buffer.push(this.#decoder.decode(buffer.subarray(0, count), { stream: true })).split(/\r?\n/);
      for (const line of lines.slice(0, -1)) await this.#line(line);
      // Lets the event loop run between the chunks of a program that prints much.
      if (count === CHUNK_BYTES) await nextTurn();
    }
    if (isLast && this.#buffer.length > 0) await this.#line(this.#buffer.end());
  }
}

const readFrom = (file: number, from: number): string => {
  const parts: Uint8Array[] = [];
  for (let position = from; position < from + MAX_OUTPUT_BYTES; ) {
    const buffer = new Uint8Array(CHUNK_BYTES);
    const count = readSync(file, buffer, 0, CHUNK_BYTES, position);
    if (count === 0) break;
    parts.push(buffer.subarray(0, count));
    position += count;
  }
  return Buffer.concat(parts).toString("utf8");
};

/** Returns the processes that an earlier server started in this folder and that are still running. */
const findRunning = (folder: string): ProcessMark[] => {
  const processMark = readMark(folder);
  if (processMark) return isAlive(processMark) ? [processMark] : [];
  // The server may have died after starting the process and before recording it.
  return findProcessesIn(folder);
};

const readMark = (folder: string): ProcessMark | undefined => {
  try {
    return JSON.parse(readFileSync(join(folder, MARK_FILE), "utf8")) as ProcessMark;
  } catch {
    return undefined;
  }
};

/** Returns Terraform processes that run in this folder or below it. */
const findProcessesIn = (folder: string): ProcessMark[] => {
  if (!existsSync(folder)) return [];
  const folderPrefix = `${realpathSync(folder)}/`;
  return listNames("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const isTerraform = /(?:^|\/)(?:terraform|tofu)[^/]*$/.test(readlinkSync(`/proc/${name}/exe`));
        const isHere = isTerraform && `${readlinkSync(`/proc/${name}/cwd`)}/`.startsWith(folderPrefix);
        return (isHere ? findMark(Number(name)) : undefined) ?? [];
      } catch {
        return [];
      }
    });
};

const listNames = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/** Interrupts the processes of an earlier server, which then write their state and end. Returns true if there are any. */
export const interruptRunning = (folder: string): boolean => {
  const marks = findRunning(folder);
  for (const { pid } of marks) sendSignal(pid, "SIGINT");
  return marks.length > 0;
};

/** Waits until no process of an earlier server runs in this folder. Kills processes with their children after `grace` milliseconds. */
export const endRunning = async (folder: string, clock: Clock, grace: number): Promise<void> => {
  const marks = findRunning(folder);
  const deadlineMs = clock.monotonic() + grace;
  while (marks.some(isAlive) && clock.monotonic() < deadlineMs) await pause(clock, POLL_MS);
  for (const { pid } of marks) sendSignal(-pid, "SIGKILL");
  while (marks.some(isAlive)) await pause(clock, POLL_MS);
  // Even if the process was already killed with the server, its children may still be running.
  const processMark = readMark(folder);
  if (processMark) await endOrphans(folder, processMark);
  await rm(join(folder, MARK_FILE), { force: true });
};
