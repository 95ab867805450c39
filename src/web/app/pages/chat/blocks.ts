// Markdown as tokens, block by block: of a text that grows only its last block is read again. Loaded with the first message that needs it.
import { lexer, type Token } from "marked";

export type { Token, Tokens } from "marked";

/** Reads a text as it grows. `blocks` keeps the objects of what is finished, so that what is drawn of them stays. */
export class Blocks {
  #text = "";
  #finished: Token[] = [];
  /** Where the last block begins. */
  #from = 0;

  /** The blocks of the text; cheap when it continues from the text before. */
  read(text: string): readonly Token[] {
    if (!text.startsWith(this.#text)) {
      this.#finished = [];
      this.#from = 0;
    }
    this.#text = text;
    const tokens = lexer(text.slice(this.#from));
    const last = tokens.findLastIndex(({ type }) => type !== "space");
    const finished = tokens.slice(0, Math.max(0, last));
    // A list or quote may still go on behind an empty line; everything before it cannot.
    this.#finished = [...this.#finished, ...finished];
    this.#from += finished.reduce((sum, { raw }) => sum + raw.length, 0);
    return [...this.#finished, ...tokens.slice(finished.length)];
  }
}
