// Runs a program of the workspace in its own session, with streamed output and a timeout. Resolves even if a background process keeps the
// pipes open (rules DM-6, DM-7).
import type { Clock } from "#base/clock.ts";
import { finishesWithin } from "#base/retry.ts";
import type { ProcessGroups } from "./groups.ts";

export type ProcessOptions = {
  command: readonly string[];
  directory: string;
  env: Readonly<Record<string, string>>;
  clock: Clock;
  groups: ProcessGroups;
  /** Milliseconds after which the whole group is ended; 0 for no timeout. */
  timeout_ms: number;
  /** The program's standard input; none if absent. */
  stdin?: Uint8Array;
  /** Also ends processes that the program leaves running. */
  ends_group?: boolean;
  /** Called when the program has started. Its process ID is also that of its group. */
  onStart?(pid: number): void;
  onOutput(from: "stdout" | "stderr", bytes: Uint8Array): void;
};

/** `pipes_left_open`: the program's output had not ended ten seconds after the program; later output is not read. */
export type ProcessEnd = { exit_code: number; timed_out: boolean; pipes_left_open: boolean };

const PIPE_TIMEOUT_MS = 10_000;

/** Resolves when the program has ended and its output was read. Rejects if it cannot be started. */
export const runProcess = async (options: ProcessOptions): Promise<ProcessEnd> => {
  const { command, directory, env, clock, groups, timeout_ms, stdin = "ignore", onStart, onOutput } = options;
  const child = Bun.spawn([...command], {
    cwd: directory,
    env: { ...env },
    stdin,
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  groups.add(child.pid);
  onStart?.(child.pid);
  let timed_out = false;
  const endGroup = (): void => {
    timed_out = true;
    groups.end(child.pid);
  };
  const timer = timeout_ms > 0 ? clock.after(timeout_ms, endGroup) : undefined;
  const pipes = [
    { from: "stdout" as const, reader: child.stdout.getReader() },
    { from: "stderr" as const, reader: child.stderr.getReader() },
  ];
  const readOutput = Promise.all(pipes.map(({ from, reader }) => readAll(reader, (bytes) => onOutput(from, bytes))));
  const exit_code = await child.exited;
  timer?.cancel();
  if (options.ends_group) groups.end(child.pid);
  const isClosed = await finishesWithin(clock, PIPE_TIMEOUT_MS, readOutput);
  if (!isClosed) for (const { reader } of pipes) await reader.cancel();
  groups.onLeaderEnd(child.pid);
  return { exit_code, timed_out, pipes_left_open: !isClosed };
};

type Reader = { read(): Promise<{ done: boolean; value?: Uint8Array }> };

const readAll = async (reader: Reader, onBytes: (bytes: Uint8Array) => void): Promise<void> => {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    if (value && value.byteLength > 0) onBytes(value);
  }
};
