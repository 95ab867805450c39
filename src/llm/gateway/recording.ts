// The prompt and the answer of one call, as they are recorded: bounded, whatever passes. Pure.

/** Bytes that are kept of a prompt, and of an answer. */
export const MAX_RECORDED_BYTES = 512 * 1024;
/** What is kept of the beginning of a longer prompt: its instructions. The newest messages are at its end. */
const PROMPT_HEAD_BYTES = MAX_RECORDED_BYTES / 4;

export type RecordedTexts = {
  readonly prompt: string;
  readonly answer: string;
  /** Bytes of the whole texts. */
  readonly prompt_bytes: number;
  readonly answer_bytes: number;
};

export class Recording {
  readonly #prompt: string;
  readonly #promptBytes: number;
  readonly #answer: Uint8Array[] = [];
  #keptBytes = 0;
  #answerBytes = 0;

  constructor(prompt: Uint8Array) {
    this.#prompt = excerpt(prompt);
    this.#promptBytes = prompt.length;
  }

  /** Keeps a piece of the answer, as long as there is room. */
  read(piece: Uint8Array): void {
    this.#answerBytes += piece.length;
    const room = MAX_RECORDED_BYTES - this.#keptBytes;
    if (room <= 0 || piece.length === 0) return;
    const kept = piece.slice(0, room);
    this.#answer.push(kept);
    this.#keptBytes += kept.length;
  }

  get texts(): RecordedTexts {
    return {
      prompt: this.#prompt,
      answer: toText(Buffer.concat(this.#answer)),
      prompt_bytes: this.#promptBytes,
      answer_bytes: this.#answerBytes,
    };
  }
}

const toText = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

const excerpt = (prompt: Uint8Array): string => {
  if (prompt.length <= MAX_RECORDED_BYTES) return toText(prompt);
  const tail = prompt.subarray(prompt.length - (MAX_RECORDED_BYTES - PROMPT_HEAD_BYTES));
  const left = prompt.length - MAX_RECORDED_BYTES;
  return `${toText(prompt.subarray(0, PROMPT_HEAD_BYTES))}\n[${left} bytes are not recorded]\n${toText(tail)}`;
};
