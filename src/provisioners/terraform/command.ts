// One command of Terraform: a process group of its own whose output goes to files, so that it lives through the death of the server
// and can still write its state; read as it grows. Interrupted first, killed later (facts/terraform 1.23).
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
import { pause } from "#base/retry.ts";
import { findMark, isAlive, markOfChild, type ProcessMark } from "../local/process-table.ts";
import { Behind, DETACHED } from "./behind.ts";
import { processorMsOfGroup } from "./processor-time.ts";
import { endStrays } from "./strays.ts";

export type CommandOptions = {
  readonly program: string;
  readonly args: readonly string[];
  /** The session's folder: the output and the mark of the process lie here. */
  readonly folder: string;
  /** Where it runs. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Milliseconds after which it is interrupted as if it had been cancelled. */
  readonly limit: number;
  /** The limit counts the processor's time of the program and what it starts, up to ten times as much by the clock: a busy machine ends nothing. */
  readonly countsProcessor?: boolean;
  /** Milliseconds between being interrupted and being killed. */
  readonly grace: number;
  /** False: has the same priority as the server. */
  readonly givesWay?: boolean;
  /** Bytes of output; one that prints more is ended. */
  readonly most?: number;
  /** Each whole line of standard output and error, in order; one that is waited for holds the next back. Absent: the output is answered. */
  readonly line?: TakeLine;
};

export type TakeLine = (text: string) => void | Promise<void>;

export type Ended = {
  readonly code: number;
  /** What has killed it, such as SIGKILL. */
  readonly killedBy: string | undefined;
  /** What it has written to standard output, where no `line` was given. */
  readonly output: string;
  /** What it has written to standard error, its end. */
  readonly errors: string;
  readonly tooLong: boolean;
  readonly tooMuch: boolean;
};

const POLL_MS = 20;
/** Of a limit that counts the processor's time: one that waits for someone else uses none. */
const CLOCK_FACTOR = 10;
/** Until the command is behind the server. */
const FIRST_POLL_MS = 2;
/** Bytes of output of one command. */
export const OUTPUT_LIMIT = 64 * 1024 * 1024;
/** Bytes of output looked at in one turn of the event loop. */
const CHUNK = 64 * 1024;
const ERRORS_SHOWN = 4096;
const MARK = "running.json";
/**
 * Not through a link that code of the template has put there; and without a time of reading, whose note would wait for a disk that is busy with
 * the output itself.
 */
const APPEND =
  constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | (constants.O_NOATIME ?? 0);

/**
 * Resolves once the process has ended, and rejects no earlier: with what `line` has thrown. Never rejects for what the process does. Nothing
 * here waits for a disk in the event loop.
 */
export const runCommand = async (options: CommandOptions): Promise<Ended> => {
  const { folder, clock, signal, line, most = OUTPUT_LIMIT } = options;
  // Not emptied for each command: that waits for a disk that is still writing what the one before has said.
  await using out = await open(join(folder, "stdout"), APPEND, 0o600);
  await using err = await open(join(folder, "stderr"), APPEND, 0o600);
  const output = new Output(out, err, most);
  const mark = join(folder, MARK);
  using behind = new Behind(options.givesWay);
  try {
    const child = Bun.spawn([...behind.words(options.args[0]), options.program, ...options.args], {
      cwd: options.cwd,
      // Programs that the template starts and that leave the group are known by it (strays.ts).
      env: { ...options.env, PWD: options.cwd },
      stdin: "ignore",
      stdout: out.fd,
      stderr: err.fd,
      detached: DETACHED,
    });
    const noted = markOfChild(child.pid);
    behind.put(child.pid);
    if (noted) await writeFile(mark, JSON.stringify(noted), { mode: 0o600 });
    let over = false;
    void child.exited.then(() => {
      over = true;
    });
    const readers = line ? output.readers(line) : [];
    const stop = new Stop(child.pid, options);
    /** What was printed could not be taken: the program ends in the same way as one that is cancelled. */
    let refused: { readonly error: unknown } | undefined;
    const read = async (isLast = false): Promise<void> => {
      try {
        for (const reader of readers) await reader.read(isLast);
      } catch (error) {
        refused ??= { error };
      }
    };
    while (!over) {
      await Promise.race([child.exited, pause(clock, behind.isPut ? POLL_MS : FIRST_POLL_MS)]);
      if (!over) behind.put(child.pid);
      if (!refused) await read();
      stop.look(signal.aborted || refused !== undefined, output.isTooMuch);
      if (stop.isAsked) await output.cut();
    }
    if (!refused) await read(true);
    const killedBy = child.signalCode?.toString() ?? toSignal(child.exitCode ?? 1);
    await stop.ended(noted, killedBy !== undefined || (child.exitCode ?? 1) > FAILED);
    if (refused) throw refused.error;
    return {
      code: child.exitCode ?? 1,
      killedBy,
      output: line ? "" : output.text(),
      errors: output.errors.slice(-ERRORS_SHOWN),
      tooLong: stop.tooLong,
      tooMuch: stop.tooMuch,
    };
  } finally {
    await rm(mark, { force: true });
  }
};

/** Interrupts the program itself, which then ends what it has begun; later kills it with everything in its group. */
class Stop {
  tooLong = false;
  tooMuch = false;
  readonly #pid: number;
  readonly #options: CommandOptions;
  readonly #began: number;
  #asked: number | undefined;
  #killed = false;

  constructor(pid: number, options: CommandOptions) {
    this.#pid = pid;
    this.#options = options;
    this.#began = options.clock.monotonic();
  }

  /** It was told to end. */
  get isAsked(): boolean {
    return this.#asked !== undefined;
  }

  look(isCancelled: boolean, isTooMuch: boolean): void {
    const { clock, limit, grace } = this.#options;
    const now = clock.monotonic();
    if (this.#asked === undefined) {
      this.tooLong = now - this.#began > limit && this.#hasUsed(now - this.#began);
      this.tooMuch = isTooMuch;
      if (!isCancelled && !this.tooLong && !this.tooMuch) return;
      this.#asked = now;
      signalTo(this.#pid, "SIGINT");
    } else if (now - this.#asked > grace && !this.#killed) {
      this.#killed = true;
      signalTo(-this.#pid, "SIGKILL");
      // Before it has a group of its own.
      signalTo(this.#pid, "SIGKILL");
    }
  }

  #hasUsed(ms: number): boolean {
    const { limit, countsProcessor = false } = this.#options;
    if (!countsProcessor || ms > CLOCK_FACTOR * limit) return true;
    const used = processorMsOfGroup(this.#pid);
    return used === undefined || used > limit;
  }

  /**
   * What was interrupted or killed, or has crashed, leaves nobody of its group behind: a shell of local-exec would go on alone. Nor does any other command but an
   * apply, which may start what the workspace is: a plan runs code of the template, too.
   */
  async ended(mark: ProcessMark | undefined, wasKilled: boolean): Promise<void> {
    const { args, folder } = this.#options;
    const mayLeave = args[0] === "apply" && this.#asked === undefined && !wasKilled;
    if (!mayLeave) signalTo(-this.#pid, "SIGKILL");
    // Only these two run what a template brings along.
    if (mark && !mayLeave && (args[0] === "plan" || args[0] === "apply")) await endStrays(folder, mark);
  }
}

/** What an apply that cannot be done ends with; a crash of the program has a higher one. */
const FAILED = 1;

/** A shell around the program says so by its code. */
const toSignal = (code: number): string | undefined =>
  Object.entries(system.signals).find(([, number]) => code === 128 + number)?.[0];

/** In words, for anyone who reads why a build has failed. */
export const killedWords = (command: string, signal: string): string =>
  `${command} was killed by ${signal}${signal === "SIGKILL" ? ", perhaps because this machine ran out of memory: its kernel's log says so" : ""}.`;

const signalTo = (pid: number, signal: "SIGINT" | "SIGKILL"): void => {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended.
  }
};

/** What one command writes: files that the commands before it have written to as well. */
class Output {
  readonly #out: FileHandle;
  readonly #err: FileHandle;
  readonly #outFrom: number;
  readonly #errFrom: number;
  readonly #most: number;

  constructor(out: FileHandle, err: FileHandle, most: number) {
    this.#out = out;
    this.#err = err;
    this.#most = most;
    this.#outFrom = fstatSync(out.fd).size;
    this.#errFrom = fstatSync(err.fd).size;
  }

  readers(line: TakeLine): Growing[] {
    return [
      new Growing(this.#out.fd, this.#outFrom, line, this.#most),
      new Growing(this.#err.fd, this.#errFrom, line, this.#most),
    ];
  }

  get isTooMuch(): boolean {
    return fstatSync(this.#out.fd).size - this.#outFrom + fstatSync(this.#err.fd).size - this.#errFrom > this.#most;
  }

  /** A program that is being ended and does not stop printing fills no disk. */
  async cut(): Promise<void> {
    for (const file of [this.#out, this.#err]) if (fstatSync(file.fd).size > this.#most) await file.truncate();
  }

  text(): string {
    return formatFailure(this.#out.fd, this.#outFrom);
  }

  /** The end of it. */
  get errors(): string {
    const { size } = fstatSync(this.#err.fd);
    return formatFailure(this.#err.fd, Math.max(this.#errFrom, size - 4 * ERRORS_SHOWN));
  }
}

/** A file that grows, in lines. */
class Growing {
  readonly #file: number;
  readonly #line: TakeLine;
  readonly #decoder = new TextDecoder();
  readonly #end: number;
  #at: number;
  #rest = "";

  constructor(file: number, from: number, line: TakeLine, most: number) {
    this.#file = file;
    this.#at = from;
    this.#end = from + most;
    this.#line = line;
  }

  async read(isLast = false): Promise<void> {
    // Looked at fifty times a second, and mostly there is nothing.
    if (!isLast && fstatSync(this.#file).size === this.#at) return;
    const buffer = new Uint8Array(CHUNK);
    for (let count = CHUNK; count === CHUNK && this.#at < this.#end; ) {
      count = readSync(this.#file, buffer, 0, CHUNK, this.#at);
      this.#at += count;
      const lines = (this.#rest + this.#decoder.decode(buffer.subarray(0, count), { stream: true })).split(/\r?\n/);
      this.#rest = lines.pop() ?? "";
      for (const line of lines) await this.#line(line);
      // Others want the loop, too, whatever a program prints.
      if (count === CHUNK) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    if (isLast && this.#rest !== "") await this.#line(this.#rest);
  }
}

const formatFailure = (file: number, from: number): string => {
  const parts: Uint8Array[] = [];
  for (let at = from; at < from + OUTPUT_LIMIT; ) {
    const buffer = new Uint8Array(CHUNK);
    const count = readSync(file, buffer, 0, CHUNK, at);
    if (count === 0) break;
    parts.push(buffer.subarray(0, count));
    at += count;
  }
  return Buffer.concat(parts).toString("utf8");
};

/** The process that a server before this one has started in this folder and that still runs. */
const runningIn = (folder: string): ProcessMark[] => {
  const noted = notedIn(folder);
  if (noted) return isAlive(noted) ? [noted] : [];
  // The server may have died between starting it and noting it.
  return processesWorkingIn(folder);
};

const notedIn = (folder: string): ProcessMark | undefined => {
  try {
    return JSON.parse(readFileSync(join(folder, MARK), "utf8")) as ProcessMark;
  } catch {
    return undefined;
  }
};

/** Programs of Terraform whose working folder lies below this one. */
const processesWorkingIn = (folder: string): ProcessMark[] => {
  if (!existsSync(folder)) return [];
  const inside = `${realpathSync(folder)}/`;
  return namesIn("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const isIt = /(?:^|\/)(?:terraform|tofu)[^/]*$/.test(readlinkSync(`/proc/${name}/exe`));
        const isHere = isIt && `${readlinkSync(`/proc/${name}/cwd`)}/`.startsWith(inside);
        return (isHere ? findMark(Number(name)) : undefined) ?? [];
      } catch {
        return [];
      }
    });
};

const namesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/** Asks what a server before this one has left running here to end: it writes its state first. */
export const interruptRunning = (folder: string): boolean => {
  const marks = runningIn(folder);
  for (const { pid } of marks) signalTo(pid, "SIGINT");
  return marks.length > 0;
};

/** Resolves once nothing of a server before this one runs here; what does not end in time is killed with all that it has started. */
export const endRunning = async (folder: string, clock: Clock, grace: number): Promise<void> => {
  const marks = runningIn(folder);
  const until = clock.monotonic() + grace;
  while (marks.some(isAlive) && clock.monotonic() < until) await pause(clock, POLL_MS);
  for (const { pid } of marks) signalTo(-pid, "SIGKILL");
  while (marks.some(isAlive)) await pause(clock, POLL_MS);
  // It may have been killed together with the server: what it had started is no part of anything that is known.
  const noted = notedIn(folder);
  if (noted) await endStrays(folder, noted);
  await rm(join(folder, MARK), { force: true });
};
