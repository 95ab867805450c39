// Splits a program's output into lines: buffers an incomplete line, splits a line at the limit, replaces invalid UTF-8, and keeps colors
// (rule DM-7).

/** Maximum number of characters per line. */
export const MAX_LINE_CHARS = 32 * 1024;

export class LineSplitter {
  readonly #decoder = new TextDecoder();
  #partialLine = "";

  /** Returns the lines that these bytes complete, without line ends. */
  push(bytes: Uint8Array): string[] {
    return this.#split(this.#decoder.decode(bytes, { stream: true }));
  }

  /** Returns the remaining lines when the output has ended. */
  end(): string[] {
    const lines = this.#split(this.#decoder.decode());
    const last = this.#partialLine;
    this.#partialLine = "";
    return last === "" ? lines : [...lines, stripCarriageReturn(last)];
  }

  #split(text: string): string[] {
    const pieces = text.split("\n");
    const lines: string[] = [];
    pieces.forEach((piece, i) => {
      this.#partialLine += piece;
      while (this.#partialLine.length > MAX_LINE_CHARS) {
        const cut = toCharacterBoundary(this.#partialLine, MAX_LINE_CHARS);
        lines.push(this.#partialLine.slice(0, cut));
        this.#partialLine = this.#partialLine.slice(cut);
      }
      if (i === pieces.length - 1) return;
      lines.push(stripCarriageReturn(this.#partialLine));
      this.#partialLine = "";
    });
    return lines;
  }
}

const stripCarriageReturn = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line);

// Never splits a surrogate pair.
const toCharacterBoundary = (text: string, index: number): number => {
  const code = text.charCodeAt(index - 1);
  return code >= 0xd800 && code <= 0xdbff ? index - 1 : index;
};
