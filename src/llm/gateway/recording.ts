// Records the prompt and the response of one call, up to a size limit. Pure.

/** Maximum size of a recorded prompt, and of a recorded response. */
export const MAX_RECORDED_BYTES = 512 * 1024;
/** Size of the recorded start of a longer prompt, which contains the instructions. The newest messages are at its end. */
const PROMPT_HEAD_BYTES = MAX_RECORDED_BYTES / 4;

export type RecordedTexts = {
  readonly prompt: string;
  readonly answer: string;
  /** Sizes of the complete texts. */
  readonly prompt_bytes: number;
  readonly answer_bytes: number;
};

export class Recording {
  readonly #prompt: string;
  readonly #promptBytes: number;
  readonly #answer: Uint8Array[] = [];
  #recordedBytes = 0;
  #answerBytes = 0;

  constructor(prompt: Uint8Array) {
    this.#prompt = getExcerpt(prompt);
    this.#promptBytes = prompt.length;
  }

  /** Records a chunk of the response while there is space. */
  read(piece: Uint8Array): void {
    this.#answerBytes += piece.length;
    const remainingBytes = MAX_RECORDED_BYTES - this.#recordedBytes;
    if (remainingBytes <= 0 || piece.length === 0) return;
    const recorded = piece.slice(0, remainingBytes);
    this.#answer.push(recorded);
    this.#recordedBytes += recorded.length;
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

const getExcerpt = (prompt: Uint8Array): string => {
  if (prompt.length <= MAX_RECORDED_BYTES) return toText(prompt);
  const tail = prompt.subarray(prompt.length - (MAX_RECORDED_BYTES - PROMPT_HEAD_BYTES));
  const excess = prompt.length - MAX_RECORDED_BYTES;
  return `${toText(prompt.subarray(0, PROMPT_HEAD_BYTES))}\n[${excess} bytes are not recorded]\n${toText(tail)}`;
};
