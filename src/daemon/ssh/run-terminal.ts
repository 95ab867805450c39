// Runs a shell or command of an SSH session on a terminal. Pauses it while the client does not read, and ends it with the client. [WN-3]
import type ssh2 from "ssh2";
import { pause } from "#base/retry.ts";
import { type ProgramEvents, startProgram, type TerminalProgram, type TerminalSize } from "../terminal/program.ts";
import { sendExit } from "./exit.ts";
import type { Running, RunOptions } from "./running.ts";

/** How long to wait for output of background processes once the program has ended. */
const FINAL_OUTPUT_TIMEOUT_MS = 200;
/** Maximum number of bytes of input that the program has not read. Reading from the client pauses while there are more. */
const MAX_UNREAD_INPUT_BYTES = 64 * 1024;

/** Clients without a terminal send 0, which is not a valid size. */
export const toTerminalSize = ({ rows, cols }: { rows: number; cols: number }): TerminalSize => ({
  height: clampDimension(rows, 24),
  width: clampDimension(cols, 80),
});

const clampDimension = (value: number, fallback: number): number => (value > 0 ? Math.min(value, 10_000) : fallback);

/** A program on a terminal that also accepts signals and has an exit status. */
export type SessionProgram = TerminalProgram & {
  signal(name: NodeJS.Signals): void;
  /** Returns the exit status; called after the program has ended. */
  outcome(): Promise<Parameters<typeof sendExit>[1]>;
};

type TerminalRun = Pick<RunOptions, "channel" | "clock" | "exited">;

/** Runs a local program on a terminal. Throws if it cannot be started. */
export const runOnTerminal = (options: RunOptions & { size: TerminalSize }): Running =>
  showOnTerminal(options, (events) => {
    const program = startProgram(options, events);
    return Object.assign(program, { outcome: async () => program });
  });

/** Like runOnTerminal(), for any terminal program. */
export const showOnTerminal = (
  { channel, clock, exited }: TerminalRun,
  start: (events: ProgramEvents) => SessionProgram,
): Running => {
  const closed = Promise.withResolvers<void>();
  let unreadBytes = 0;
  const program = start({
    output: (chunk) => show(channel, chunk),
    drained: () => {
      unreadBytes = 0;
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
    unreadBytes += chunk.byteLength;
    program.write(new Uint8Array(chunk));
    if (unreadBytes > MAX_UNREAD_INPUT_BYTES) channel.pause();
  });
  let hasEnded = false;
  channel.once("close", () => {
    program.gate?.release();
    if (!hasEnded) void program.end();
  });
  void (async () => {
    await program.exited;
    await Promise.race([closed.promise, pause(clock, FINAL_OUTPUT_TIMEOUT_MS)]);
    hasEnded = true;
    sendExit(channel, await program.outcome(), exited);
    program.release();
  })();
  return { signal: (name) => program.signal(name), resize: (size) => program.resize(size) };
};
