// Splits Markdown into tokens, block by block. When a text grows, only its last block is parsed again. Loaded with the first message that
// needs it.
import { lexer, type Token } from "marked";

export type { Token, Tokens } from "marked";

/** Parses a growing text incrementally. Finished blocks stay the same objects, so that their rendered elements are reused. */
export class BlockParser {
  #text = "";
  #finishedBlocks: Token[] = [];
  /** Start of the last block. */
  #lastBlockStart = 0;

  /** Returns the blocks of the text. Cheap if the text extends the previously parsed text. */
  parse(text: string): readonly Token[] {
    if (!text.startsWith(this.#text)) {
      this.#finishedBlocks = [];
      this.#lastBlockStart = 0;
    }
    this.#text = text;
    const tokens = lexer(text.slice(this.#lastBlockStart));
    const last = tokens.findLastIndex(({ type }) => type !== "space");
    const finished = tokens.slice(0, Math.max(0, last));
    // A list or quote may continue after an empty line; everything before it is final.
    this.#finishedBlocks = [...this.#finishedBlocks, ...finished];
    this.#lastBlockStart += finished.reduce((sum, { raw }) => sum + raw.length, 0);
    return [...this.#finishedBlocks, ...tokens.slice(finished.length)];
  }
}
