// One command of Terraform: a process group of its own whose output goes to files, so that it lives through the death of the server
// and can still write its state; read as it grows. Interrupted first, killed later (facts/terraform 1.23).
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { isAlive, markOf, type ProcessMark } from "../local/process-table.ts";

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
  /** Milliseconds between being interrupted and being killed. */
  readonly grace: number;
  /** Each whole line of standard output and error, in order. Absent: the output is answered. */
  readonly line?: (text: string) => void;
};

export type Ended = {
  readonly code: number;
  /** What it has written to standard output, where no `line` was given. */
  readonly output: string;
  /** What it has written to standard error, its end. */
  readonly errors: string;
  readonly tooLong: boolean;
  readonly tooMuch: boolean;
};

const POLL_MS = 20;
/** Bytes of output of one command. */
export const OUTPUT_LIMIT = 64 * 1024 * 1024;
const CHUNK = 256 * 1024;
const ERRORS_SHOWN = 4096;
const MARK = "running.json";
/** Not through a link that code of the template has put there. */
const APPEND = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW;
/** The server goes first where both want the processor: ten runs at once kept it from answering. */
const nice = Bun.which("nice");
const BEHIND = nice === null ? [] : [nice, "-n", "10"];

/** Resolves once the process has ended. Never rejects for what the process does. */
export const runCommand = async (options: CommandOptions): Promise<Ended> => {
  const { folder, clock, signal, line } = options;
  const [outFile, errFile] = [join(folder, "stdout"), join(folder, "stderr")];
  // Not emptied for each command: that waits for a disk that is still writing what the one before has said.
  const [out, err] = [openSync(outFile, APPEND, 0o600), openSync(errFile, APPEND, 0o600)];
  const [outFrom, errFrom] = [fstatSync(out).size, fstatSync(err).size];
  try {
    const child = Bun.spawn([...BEHIND, options.program, ...options.args], {
      cwd: options.cwd,
      env: { ...options.env },
      stdin: "ignore",
      stdout: out,
      stderr: err,
      detached: true,
    });
    const mark = markOf(child.pid);
    if (mark) writeFileSync(join(folder, MARK), JSON.stringify(mark), { mode: 0o600 });
    let over = false;
    void child.exited.then(() => {
      over = true;
    });
    const readers = line ? [new Growing(out, outFrom, line), new Growing(err, errFrom, line)] : [];
    const stop = new Stop(child.pid, options);
    const bytes = (): number => fstatSync(out).size - outFrom + fstatSync(err).size - errFrom;
    while (!over) {
      await Promise.race([child.exited, pause(clock, POLL_MS)]);
      for (const reader of readers) reader.read();
      stop.look(signal.aborted, bytes() > OUTPUT_LIMIT);
    }
    for (const reader of readers) reader.read(true);
    stop.ended();
    return {
      code: child.exitCode ?? 1,
      output: line ? "" : textOf(out, outFrom),
      errors: textOf(err, errFrom).slice(-ERRORS_SHOWN),
      tooLong: stop.tooLong,
      tooMuch: stop.tooMuch,
    };
  } finally {
    closeSync(out);
    closeSync(err);
    rmSync(join(folder, MARK), { force: true });
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

  look(isCancelled: boolean, isTooMuch: boolean): void {
    const { clock, limit, grace } = this.#options;
    const now = clock.monotonic();
    if (this.#asked === undefined) {
      this.tooLong = now - this.#began > limit;
      this.tooMuch = isTooMuch;
      if (!isCancelled && !this.tooLong && !this.tooMuch) return;
      this.#asked = now;
      signalTo(this.#pid, "SIGINT");
    } else if (now - this.#asked > grace && !this.#killed) {
      this.#killed = true;
      signalTo(-this.#pid, "SIGKILL");
    }
  }

  /**
   * What was interrupted leaves nobody of its group behind: a shell of local-exec would go on alone. Nor does any other command but an apply,
   * which may start what the workspace is: a plan runs code of the template, too.
   */
  ended(): void {
    const mayLeave = this.#options.args[0] === "apply" && this.#asked === undefined;
    if (!mayLeave) signalTo(-this.#pid, "SIGKILL");
  }
}

const signalTo = (pid: number, signal: "SIGINT" | "SIGKILL"): void => {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended.
  }
};

/** A file that grows, in lines. */
class Growing {
  readonly #file: number;
  readonly #line: (text: string) => void;
  readonly #decoder = new TextDecoder();
  readonly #end: number;
  #at: number;
  #rest = "";

  constructor(file: number, from: number, line: (text: string) => void) {
    this.#file = file;
    this.#at = from;
    this.#end = from + OUTPUT_LIMIT;
    this.#line = line;
  }

  read(isLast = false): void {
    // Looked at fifty times a second, and mostly there is nothing.
    if (!isLast && fstatSync(this.#file).size === this.#at) return;
    const buffer = new Uint8Array(CHUNK);
    for (let count = CHUNK; count === CHUNK && this.#at < this.#end; ) {
      count = readSync(this.#file, buffer, 0, CHUNK, this.#at);
      this.#at += count;
      const lines = (this.#rest + this.#decoder.decode(buffer.subarray(0, count), { stream: true })).split(/\r?\n/);
      this.#rest = lines.pop() ?? "";
      for (const line of lines) this.#line(line);
    }
    if (isLast && this.#rest !== "") this.#line(this.#rest);
  }
}

const textOf = (file: number, from: number): string => {
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
  const found: ProcessMark[] = [];
  try {
    const mark = JSON.parse(readFileSync(join(folder, MARK), "utf8")) as ProcessMark;
    if (isAlive(mark)) found.push(mark);
  } catch {
    // None was noted: the server may have died between starting it and noting it.
    found.push(...processesWorkingIn(folder));
  }
  return found;
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
        return (isHere ? markOf(Number(name)) : undefined) ?? [];
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
  rmSync(join(folder, MARK), { force: true });
};
