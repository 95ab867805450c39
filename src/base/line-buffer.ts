// Collects text that arrives in pieces until a line is complete. The pieces of a long line are joined once: joining and searching them for
// each piece would take time that grows with the square of the line's length.

/** This many small pieces are joined into a larger one, so that millions of tiny pieces take no more memory than their text. */
const MAX_SMALL_PIECES = 1_024;

export class LineBuffer {
  #large: string[] = [];
  #small: string[] = [];
  #length = 0;

  /** Number of characters of the incomplete line. */
  get length(): number {
    return this.#length;
  }

  /** Adds a piece, and returns all complete lines: the text up to the last line feed of the piece. Empty if no line is complete. */
  push(piece: string): string {
    const end = piece.lastIndexOf("\n") + 1;
    if (end === 0) {
      this.#add(piece);
      return "";
    }
    const lines = this.end() + piece.slice(0, end);
    this.#add(piece.slice(end));
    return lines;
  }

  /** Returns the incomplete line and removes it. */
  end(): string {
    const line = this.#large.join("") + this.#small.join("");
    this.#large = [];
    this.#small = [];
    this.#length = 0;
    return line;
  }

  #add(piece: string): void {
    if (piece === "") return;
    this.#length += piece.length;
    this.#small.push(piece);
    if (this.#small.length < MAX_SMALL_PIECES) return;
    this.#large.push(this.#small.join(""));
    this.#small = [];
  }
}
