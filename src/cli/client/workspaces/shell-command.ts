// Wraps a command for the terminal, so that its exit code and, in a pipe, its unmodified output can be recovered. Uses marks that no
// program prints by accident: a control character, the terminal's ID, one letter, and sometimes a number.
import { quoteForShell } from "#base/text/shell-quote.ts";

export type Marks = {
  /** The terminal is set up and accepts input. */
  ready: string;
  /** One batch of input was consumed. */
  consumed: string;
  /** Precedes the exit code and the end of the mark. */
  exit: string;
  end: string;
};

const MARK = "\u001e";

export const createMarks = (id: string): Marks => {
  const name = `${MARK}${id.replaceAll("-", "")}`;
  return { ready: `${name}?`, consumed: `${name}+`, exit: `${name}=`, end: MARK };
};

/** Bytes of input per line of base64: terminals accept lines of up to 4096 characters. */
const LINE_BYTES = 3_000;
/** Bytes per batch. The number is large, because each batch starts two programs. */
export const BATCH_BYTES = 24 * LINE_BYTES;
/** The batch that ends the input. */
export const INPUT_END = "0\n";

/** Encodes a batch for the loop of `toPipeCommand`: the number of lines, then the lines. */
export const encodeBatch = (bytes: Uint8Array): string => {
  const lines: string[] = [];
  for (let at = 0; at < bytes.byteLength; at += LINE_BYTES) {
    lines.push(Buffer.from(bytes.subarray(at, at + LINE_BYTES)).toString("base64"));
  }
  return `${[lines.length, ...lines].join("\n")}\n`;
};

const escapeMark = (mark: string): string => mark.replaceAll(MARK, "\\036");

/** The user's shell, as the daemon has determined it. */
const SHELL = `"\${SHELL:-/bin/sh}"`;

/** Returns the command for an interactive terminal; undefined stands for the login shell. */
export const toTerminalCommand = (command: string | undefined, { exit, end }: Marks): string => {
  const program = command === undefined ? `${SHELL} -l` : `${SHELL} -c ${quoteForShell(command)}`;
  return `exec /bin/sh -c ${quoteForShell(`${program}; printf '${escapeMark(exit)}%d${escapeMark(end)}' $?`)}`;
};

/**
 * Returns the command for a pipe. Input is sent as lines of base64, so that the terminal does not interpret it, in acknowledged batches,
 * for backpressure. A terminal delivers one line at a time, so `head` reads only the lines it needs. Without a command, the shell reads
 * commands from the input.
 */
export const toPipeCommand = (command: string | undefined, { ready, consumed, exit, end }: Marks): string => {
  const program = command === undefined ? SHELL : `${SHELL} -c ${quoteForShell(command)}`;
  // A command that ends before its input leaves the loop in the middle of a batch, which is harmless.
  const lines = [
    "stty -echo -opost",
    "exec 3>&1",
    `printf '${escapeMark(ready)}'`,
    `{ while read -r n && [ "$n" -gt 0 ]; do head -n "$n" | base64 -d; printf '${escapeMark(consumed)}' >&3; done; } 2>/dev/null |`,
    `{ ${program}; printf '${escapeMark(exit)}%d${escapeMark(end)}' $? >&3; }`,
  ];
  return `exec /bin/sh -c ${quoteForShell(lines.join("\n"))}`;
};

export type ReadResult = { output: Uint8Array; isReady: boolean; consumedCount: number; exit: number | undefined };

/** Removes the marks from the output; holds back a possible prefix of a mark. */
export class MarkReader {
  readonly #marks: Marks;
  #held = "";

  constructor(marks: Marks) {
    this.#marks = marks;
  }

  read(chunk: Uint8Array): ReadResult {
    const { ready, consumed, exit, end } = this.#marks;
    // One character per byte, so that decoding changes nothing.
    let text = this.#held + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
    const found: ReadResult = { output: chunk, isReady: false, consumedCount: 0, exit: undefined };
    let output = "";
    for (;;) {
      const at = text.indexOf(MARK);
      if (at < 0) break;
      output += text.slice(0, at);
      text = text.slice(at);
      const code = text.startsWith(exit) ? /^(\d+)(.)?/s.exec(text.slice(exit.length)) : null;
      if (text.startsWith(ready)) {
        found.isReady = true;
        text = text.slice(ready.length);
      } else if (text.startsWith(consumed)) {
        found.consumedCount += 1;
        text = text.slice(consumed.length);
      } else if (code?.[2] === end) {
        found.exit = Number(code[1]);
        text = text.slice(exit.length + code[0].length);
      } else if (
        isMarkPrefix(text, [ready, consumed, exit]) ||
        (text.startsWith(exit) && /^\d{0,3}$/.test(text.slice(exit.length)))
      )
        break;
      else {
        output += MARK;
        text = text.slice(1);
      }
    }
    this.#held = text.startsWith(MARK) ? text : "";
    if (this.#held === "") output += text;
    return { ...found, output: new Uint8Array(Buffer.from(output, "latin1")) };
  }

  /** Returns held-back bytes that were not a mark. */
  takeHeld(): Uint8Array {
    return new Uint8Array(Buffer.from(this.#held, "latin1"));
  }
}

const isMarkPrefix = (text: string, marks: readonly string[]): boolean =>
  marks.some((mark) => text.length < mark.length && mark.startsWith(text));
