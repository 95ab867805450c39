// A shell or command of an SSH session on a terminal. It is held back while its client does not take what it shows, and ends with its client. [WN-3]
import type ssh2 from "ssh2";
import { pause } from "#base/retry.ts";
import { startProgram, type TerminalSize } from "../terminal/program.ts";
import { exitChannel } from "./exit.ts";
import type { Running, RunOptions } from "./running.ts";

/** Output that something in the background may still write once the program has ended. */
const LAST_WORDS_MS = 200;
/** Typed and not yet read by the program; more stays with the client. */
const UNREAD_INPUT = 64 * 1024;

/** Clients without a terminal of their own say 0, which no terminal may have. */
export const sizeOf = ({ rows, cols }: { rows: number; cols: number }): TerminalSize => ({
  height: clamped(rows, 24),
  width: clamped(cols, 80),
});

const clamped = (value: number, fallback: number): number => (value > 0 ? Math.min(value, 10_000) : fallback);

/** Throws when the program cannot be started. */
export const runOnTerminal = (options: RunOptions & { size: TerminalSize }): Running => {
  const { channel, clock, exited } = options;
  const closed = Promise.withResolvers<void>();
  let unread = 0;
  const program = startProgram(options, {
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
    program.write(Uint8Array.from(chunk));
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
    exitChannel(channel, program, exited);
    program.release();
  })();
  return { signal: (name) => program.signal(name), resize: (size) => program.resize(size) };
};
