// What the program reads from and writes to besides whole lines: keys and pipes on standard input, bytes on standard output, the size of
// the terminal. Made once by src/main.ts and handed to the verbs; the only place that knows the process's own streams.

import { closeSync, constants, openSync, readSync } from "node:fs";
import type { Output } from "./output.ts";

export type Size = { height: number; width: number };

export interface Streams {
  /** Standard input is a terminal, so someone can be asked. */
  readonly inputIsTerminal: boolean;
  /** Standard output is a terminal, so someone looks. */
  readonly outputIsTerminal: boolean;
  /** What comes in, until its end. One reader at a time; leaving the loop stops reading. */
  input(): AsyncIterable<Uint8Array>;
  /** Writes to standard output as it is; resolves when it was taken. Rejects with OutputGone. */
  write(data: Uint8Array | string): Promise<void>;
  /** The same for standard error. */
  writeError(data: Uint8Array): Promise<void>;
  /** Throws away what was typed at the terminal and not read yet. */
  forget(): void;
  /** Keys come in one by one and unseen until it is disposed. */
  raw(): Disposable;
  /** Of the terminal; undefined where none exists. */
  size(): Size | undefined;
  onResize(listener: () => void): Disposable;
}

/** The streams that a verb was given; what cannot be read or asked without them is a defect of the caller. */
export const getStreams = ({ streams }: { streams?: Streams }): Streams => {
  if (!streams) throw new Error("this verb needs streams");
  return streams;
};

/** The process's own. `output` and `errors` write, for the verbs and for whatever else the program says. */
export const processStreams = (output: Output, errors: Output): Streams => ({
  // Looked at only when asked: opening standard input is something.
  get inputIsTerminal() {
    return process.stdin.isTTY === true;
  },
  get outputIsTerminal() {
    return process.stdout.isTTY === true;
  },
  async *input() {
    // Who asks twice, or asks and then passes keys on, reads again.
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
      // Nothing is left, or there is no terminal.
    }
    if (terminal !== undefined) closeSync(terminal);
  },
  raw() {
    process.stdin.setRawMode(true);
    // The runtime's raw mode still turns line feeds into carriage returns and line feeds, which full-screen programs do for themselves.
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
