// Splits a program's output into lines: buffers an incomplete line, splits a line at the limit, replaces invalid UTF-8, and keeps colors
// (rule DM-7).

/** Maximum number of characters per line. */
export const MAX_LINE = 32 * 1024;

export class LineSplitter {
  readonly #decoder = new TextDecoder();
  #rest = "";

  /** Returns the lines that these bytes complete, without line ends. */
  push(bytes: Uint8Array): string[] {
    return this.#split(this.#decoder.decode(bytes, { stream: true }));
  }

  /** Returns the rest when the output has ended. */
  end(): string[] {
    const lines = this.#split(this.#decoder.decode());
    const last = this.#rest;
    this.#rest = "";
    return last === "" ? lines : [...lines, stripCarriageReturn(last)];
  }

  #split(text: string): string[] {
    const pieces = text.split("\n");
    const lines: string[] = [];
    pieces.forEach((piece, i) => {
      this.#rest += piece;
      while (this.#rest.length > MAX_LINE) {
        const cut = toCharacterBoundary(this.#rest, MAX_LINE);
        lines.push(this.#rest.slice(0, cut));
        this.#rest = this.#rest.slice(cut);
      }
      if (i === pieces.length - 1) return;
      lines.push(stripCarriageReturn(this.#rest));
      this.#rest = "";
    });
    return lines;
  }
}

const stripCarriageReturn = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line);

// Never splits a surrogate pair.
const toCharacterBoundary = (text: string, at: number): number => {
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code <= 0xdbff ? at - 1 : at;
};
