// Runs the programs that the server starts in the workspace for tools of chats, each in its own process group (facts/wire 4.1, rule PT-7).
// Keeps the latest output of a limited number of programs.
import { type Clock, toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import { AppError, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { pause } from "#base/retry.ts";
import type { ProcessInfo, ProcessOutput, SignalProcess, StartProcess } from "#schema/agents/agent-files.ts";
import { Wakeup } from "#src/wire/index.ts";
import type { Environment } from "../environment.ts";
import { getOwnCommand } from "../own-program.ts";
import { canRestrictWrites } from "../sandbox/landlock.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { runProcess } from "../scripts/process.ts";
import { trimPartialCharacter } from "../whole-characters.ts";

/** A ring buffer of the last bytes that a process has written. */
class OutputRing {
  readonly #bytes: Uint8Array;
  #end = 0;
  #written = 0;

  constructor(size: number) {
    this.#bytes = new Uint8Array(size);
  }

  push(chunk: Uint8Array): void {
    const size = this.#bytes.byteLength;
    this.#written += chunk.byteLength;
    const part = chunk.subarray(Math.max(0, chunk.byteLength - size));
    const first = Math.min(part.byteLength, size - this.#end);
    this.#bytes.set(part.subarray(0, first), this.#end);
    this.#bytes.set(part.subarray(first), 0);
    this.#end = (this.#end + part.byteLength) % size;
  }

  /** Total number of bytes ever pushed. */
  get written(): number {
    return this.#written;
  }

  /** Returns a copy of the last bytes, oldest first. If bytes were dropped, it begins at a character boundary. */
  snapshot(): Uint8Array {
    if (this.#written < this.#bytes.byteLength) return this.#bytes.slice(0, this.#end);
    const result = new Uint8Array(this.#bytes.byteLength);
    const tail = this.#bytes.subarray(this.#end);
    result.set(tail);
    result.set(this.#bytes.subarray(0, this.#end), tail.byteLength);
    let start = 0;
    while (start < 4 && ((result[start] as number) & 0xc0) === 0x80) start += 1;
    return result.subarray(start);
  }
}

const MAX_RUNNING = 64;
const MAX_PROGRAMS = 128;
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_WAIT_MS = 30_000;
const SIGNALS = { terminate: "SIGTERM", kill: "SIGKILL", interrupt: "SIGINT" } as const;
/** The exit code that shells return for a program that cannot be started. */
const CANNOT_START_CODE = 126;

export type ProcessesOptions = {
  clock: Clock;
  groups: ProcessGroups;
  env: Environment;
  /** Returns the variables for showing programs on the desktop; empty while no desktop is running. */
  display(): Environment;
};

type StartedProcess = {
  id: string;
  pid: number;
  command: string;
  directory: string;
  started_at: number;
  ended_at: number | undefined;
  exit_code: number | null;
  timed_out: boolean;
  ring: OutputRing;
  /** Signals new output. */
  news: Wakeup;
  over: Promise<void>;
};

/**
 * `after`: offset in bytes; `limit`: maximum number of bytes; `follow`: returns when there is more output, not only at the end of the
 * program.
 */
export type OutputQuery = { after: number; wait_ms: number; limit?: number; follow?: boolean };

export class Processes {
  readonly #options: ProcessesOptions;
  readonly #started = new Map<string, StartedProcess>();

  constructor(options: ProcessesOptions) {
    this.#options = options;
  }

  /**
   * Runs `sh -c command`, returns once it has started, and calls `onEnded` when it has ended. Returns an existing process with this ID
   * unchanged. Rejects with 429 while too many run.
   */
  start(request: StartProcess, directory: string, onEnded: () => void = () => {}): ProcessInfo {
    const { id = uuid(), command, env = {}, timeout_ms = 0, writable_only } = request;
    const { clock, groups } = this.#options;
    const existing = this.#started.get(id);
    if (existing) return toInfo(existing);
    if (writable_only && !canRestrictWrites())
      throw new AppError("conflict", "This system cannot keep programs from writing files.");
    const running = [...this.#started.values()].filter(({ ended_at }) => ended_at === undefined);
    if (running.length >= MAX_RUNNING) throw new AppError("too_many_requests", `${MAX_RUNNING} programs run already.`);
    this.#evictEnded();
    const ring = new OutputRing(MAX_OUTPUT_BYTES);
    const outputChanged = new Wakeup();
    const program: StartedProcess = {
      id,
      pid: 0,
      command,
      directory,
      started_at: clock.now(),
      ended_at: undefined,
      exit_code: null,
      timed_out: false,
      ring,
      news: outputChanged,
      over: Promise.resolve(),
    };
    const onEnd = (exit_code: number, timed_out: boolean): void => {
      Object.assign(program, { exit_code, timed_out, ended_at: clock.now() });
      onEnded();
    };
    program.over = runProcess({
      command: [...(writable_only ? buildReadOnlyPrefix(writable_only) : []), "sh", "-c", command],
      directory,
      env: { ...this.#options.display(), ...this.#options.env, ...env },
      clock,
      groups,
      timeout_ms,
      onStart: (pid) => {
        program.pid = pid;
      },
      onOutput: (_, bytes) => {
        ring.push(bytes);
        outputChanged.wake();
      },
    }).then(
      ({ exit_code, timed_out }) => onEnd(exit_code, timed_out),
      (error) => {
        ring.push(new TextEncoder().encode(`The program cannot be started: ${(error as Error).message}\n`));
        onEnd(CANNOT_START_CODE, false);
      },
    );
    this.#started.set(program.id, program);
    return toInfo(program);
  }

  /** Returns processes, oldest first. */
  list(): ProcessInfo[] {
    return [...this.#started.values()].map(toInfo);
  }

  /** Returns the retained output from offset `after` on. Waits up to `wait_ms` for the program's end, or for new output. */
  async output(id: string, query: OutputQuery): Promise<ProcessOutput> {
    const { after, wait_ms, limit = MAX_OUTPUT_BYTES, follow = false } = query;
    const program = this.#find(id);
    const hasNews = () => follow && program.ring.written > after;
    if (wait_ms > 0 && program.ended_at === undefined && !hasNews()) {
      const waitEnd = new AbortController();
      const wait = pause(this.#options.clock, Math.min(wait_ms, MAX_WAIT_MS), waitEnd.signal);
      await Promise.race([program.over, wait, ...(follow ? [program.news.wait()] : [])]);
      waitEnd.abort();
    }
    const retained = program.ring.snapshot();
    const { written } = program.ring;
    const first = written - retained.byteLength;
    const from = Math.min(written, Math.max(first, after));
    const requested = retained.subarray(from - first, from - first + limit);
    // The remaining bytes of the last character may not be written yet, or may be beyond the limit.
    const isLast = program.ended_at !== undefined && from + requested.byteLength === written;
    const complete = isLast ? requested : trimPartialCharacter(requested);
    const next = from + complete.byteLength;
    const output = new TextDecoder("utf-8", { ignoreBOM: true }).decode(complete);
    const more = from + requested.byteLength < written;
    return { ...toInfo(program), output, from, next, more, truncated: from > after };
  }

  /** Signals the whole process group. Rejects with 409 if the program has ended. */
  signal(id: string, { signal }: SignalProcess): void {
    const { pid, ended_at } = this.#find(id);
    if (ended_at !== undefined || pid === 0) throw new AppError("conflict", "The program has ended.");
    try {
      process.kill(-pid, SIGNALS[signal]);
    } catch {
      throw new AppError("conflict", "The program has ended.");
    }
  }

  #find(id: string): StartedProcess {
    const started = this.#started.get(id);
    if (!started) throw notFound();
    return started;
  }

  #evictEnded(): void {
    for (const [id, { ended_at }] of this.#started) {
      if (this.#started.size < MAX_PROGRAMS) return;
      if (ended_at !== undefined) this.#started.delete(id);
    }
  }
}

/** Returns the prefix for a command that may write only these files. */
const buildReadOnlyPrefix = (writable: readonly string[]): string[] => [
  ...getOwnCommand(),
  ...["readonly", ...writable.flatMap((path) => ["--writable", path]), "--"],
];

const toInfo = ({
  id,
  pid,
  command,
  directory,
  started_at,
  ended_at,
  exit_code,
  timed_out,
}: StartedProcess): ProcessInfo => ({
  id,
  pid,
  command,
  directory,
  exit_code,
  timed_out,
  running: ended_at === undefined,
  started_at: toRfc3339(started_at),
  ended_at: toOptionalRfc3339(ended_at) ?? null,
});
