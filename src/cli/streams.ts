// Access to the program's streams beyond printing lines: keys and pipes on standard input, bytes on standard output, and the terminal's
// size. Created once by src/main.ts and passed to commands; the only code that uses the process's own streams.

import { closeSync, constants, openSync, readSync } from "node:fs";
import type { Output } from "./output.ts";

export type Size = { height: number; width: number };

export interface Streams {
  /** Standard input is a terminal, so the user can be prompted. */
  readonly inputIsTerminal: boolean;
  /** Standard output is a terminal. */
  readonly outputIsTerminal: boolean;
  /** Yields the input until its end. One reader at a time; leaving the loop stops reading. */
  input(): AsyncIterable<Uint8Array>;
  /** Writes to standard output; resolves when written. Rejects with OutputClosedError. */
  write(data: Uint8Array | string): Promise<void>;
  /** Writes to standard error, in the same way. */
  writeError(data: Uint8Array): Promise<void>;
  /** Discards unread terminal input. */
  forget(): void;
  /** Switches to raw mode until disposed: single keys, without echo. */
  raw(): Disposable;
  /** Returns the terminal's size; undefined without a terminal. */
  size(): Size | undefined;
  onResize(listener: () => void): Disposable;
}

/** Returns the streams of a command. Using them without any is a bug in the caller. */
export const getStreams = ({ streams }: { streams?: Streams }): Streams => {
  if (!streams) throw new Error("this verb needs streams");
  return streams;
};

/** Creates the process's streams. `output` and `errors` are shared with all other output of the program. */
export const createProcessStreams = (output: Output, errors: Output): Streams => ({
  // Evaluated lazily: opening standard input has side effects.
  get inputIsTerminal() {
    return process.stdin.isTTY === true;
  },
  get outputIsTerminal() {
    return process.stdout.isTTY === true;
  },
  async *input() {
    // Reading can resume, for a second prompt or for forwarding keys after a prompt.
    const chunks: AsyncIterable<Buffer> = process.stdin.iterator({ destroyOnReturn: false });
    for await (const chunk of chunks) yield new Uint8Array(chunk);
  },
  write: (data) => output.write(data),
  writeError: (data) => errors.write(data),
  forget() {
    let terminal: number | undefined;
    try {
      // Opened again, so that the non-blocking mode does not affect other readers.
      terminal = openSync("/dev/tty", constants.O_RDONLY | constants.O_NONBLOCK);
      while (readSync(terminal, new Uint8Array(4_096)) > 0);
    } catch {
      // There is no more input, or no terminal.
    }
    if (terminal !== undefined) closeSync(terminal);
  },
  raw() {
    process.stdin.setRawMode(true);
    // The runtime's raw mode still converts line feeds to CR LF, which full-screen programs do themselves.
    if (Bun.which("stty")) Bun.spawnSync(["stty", "-opost"], { stdio: ["inherit", "ignore", "ignore"] });
    return { [Symbol.dispose]: () => void process.stdin.setRawMode(false) };
  },
  size() {
    const { rows, columns } = process.stdout;
    return rows > 0 && columns > 0 ? { height: rows, width: columns } : undefined;
  },
  onResize(listener) {
    process.stdout.on("resize", listener);
    return { [Symbol.dispose]: () => void process.stdout.off("resize", listener) };
  },
});
