// A shell or command of an SSH session on a terminal. It is held back while its client does not take what it shows, and ends with its client. [WN-3]
import type ssh2 from "ssh2";
import { pause } from "#base/retry.ts";
import { type ProgramEvents, startProgram, type TerminalProgram, type TerminalSize } from "../terminal/program.ts";
import { exitChannel } from "./exit.ts";
import type { Running, RunOptions } from "./running.ts";

/** Output that something in the background may still write once the program has ended. */
const LAST_WORDS_MS = 200;
/** Typed and not yet read by the program; more stays with the client. */
const UNREAD_INPUT = 64 * 1024;

/** Clients without a terminal of their own say 0, which no terminal may have. */
export const toTerminalSize = ({ rows, cols }: { rows: number; cols: number }): TerminalSize => ({
  height: clamped(rows, 24),
  width: clamped(cols, 80),
});

const clamped = (value: number, fallback: number): number => (value > 0 ? Math.min(value, 10_000) : fallback);

/** A program on a terminal as a session needs it: it can be sent signals, and says how it has ended. */
export type SessionProgram = TerminalProgram & {
  signal(name: NodeJS.Signals): void;
  /** Asked once it has ended. */
  outcome(): Promise<Parameters<typeof exitChannel>[1]>;
};

type TerminalRun = Pick<RunOptions, "channel" | "clock" | "exited">;

/** Throws when the program cannot be started. */
export const runOnTerminal = (options: RunOptions & { size: TerminalSize }): Running =>
  showOnTerminal(options, (events) => {
    const program = startProgram(options, events);
    return Object.assign(program, { outcome: async () => program });
  });

/** The same for any program that can be on a terminal. */
export const showOnTerminal = (
  { channel, clock, exited }: TerminalRun,
  start: (events: ProgramEvents) => SessionProgram,
): Running => {
  const closed = Promise.withResolvers<void>();
  let unread = 0;
  const program = start({
    output: (chunk) => show(channel, chunk),
    drained: () => {
      unread = 0;
      channel.resume();
    },
    closed: () => closed.resolve(),
  });
  const show = (to: ssh2.ServerChannel, chunk: Uint8Array): void => {
    if (to.destroyed || to.write(Buffer.from(chunk))) return;
    program.gate?.hold();
    to.once("drain", () => program.gate?.release());
  };
  channel.on("data", (chunk: Buffer) => {
    unread += chunk.byteLength;
    program.write(new Uint8Array(chunk));
    if (unread > UNREAD_INPUT) channel.pause();
  });
  let isOver = false;
  channel.once("close", () => {
    program.gate?.release();
    if (!isOver) void program.end();
  });
  void (async () => {
    await program.exited;
    await Promise.race([closed.promise, pause(clock, LAST_WORDS_MS)]);
    isOver = true;
    exitChannel(channel, await program.outcome(), exited);
    program.release();
  })();
  return { signal: (name) => program.signal(name), resize: (size) => program.resize(size) };
};
