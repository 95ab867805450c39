// Masks secrets in texts before they are shown, in plain form and in common encodings. Every line of a secret is treated as a secret,
// because logs arrive in lines (rules TF-11, TP-33).
import { listEncodings } from "./spellings.ts";

/** Shown to people in place of a secret, or of a text that contains one. */
export const HIDDEN_TEXT = "(hidden)";

/** Masking shorter secrets would hide ordinary words. */
const MIN_SECRET_CHARS = 6;
/** Number of leading characters that identify a possible secret; every secret is at least this long. */
const HEAD_CHARS = 4;
/** Size of the hash table for heads. */
const TABLE_SIZE = 1 << 16;

export class Mask {
  readonly #added = new Set<string>();
  /** Encodings of secrets by the hash of their head, longest first. */
  readonly #byHead = new Map<number, string[]>();
  /** 1 at the hashes of heads. A 0 excludes a position of a text without a comparison. */
  readonly #headHashes = new Uint8Array(TABLE_SIZE);

  add(...secrets: readonly (string | undefined)[]): void {
    for (const secret of secrets) {
      if (secret === undefined || this.#added.has(secret)) continue;
      this.#added.add(secret);
      const lines = secret.split(/\r?\n/).map((line) => line.trim());
      for (const part of new Set([secret.trim(), ...lines])) {
        if (part.length >= MIN_SECRET_CHARS) for (const encoding of listEncodings(part)) this.#addEncoding(encoding);
      }
    }
  }

  #addEncoding(encoding: string): void {
    if (encoding.length < MIN_SECRET_CHARS) return;
    const head = hashHead(encoding, 0);
    const encodings = this.#byHead.get(head) ?? [];
    if (encodings.includes(encoding)) return;
    encodings.push(encoding);
    this.#byHead.set(
      head,
      encodings.sort((a, b) => b.length - a.length),
    );
    this.#headHashes[head] = 1;
  }

  /** Masks all secrets in one pass over the text. Overlapping secrets are masked together. */
  hide(text: string): string {
    let masked = "";
    let maskedUntil = 0;
    for (let index = 0; index + MIN_SECRET_CHARS <= text.length; index++) {
      const head = hashHead(text, index);
      if (this.#headHashes[head] !== 1) continue;
      let end = this.#findEnd(text, index, head);
      if (end === undefined) continue;
      for (let inner = index + 1; inner < end && inner + MIN_SECRET_CHARS <= text.length; inner++) {
        end = Math.max(end, this.#findEnd(text, inner, hashHead(text, inner)) ?? 0);
      }
      masked += text.slice(maskedUntil, index) + HIDDEN_TEXT;
      maskedUntil = end;
      index = end - 1;
    }
    return maskedUntil === 0 ? text : masked + text.slice(maskedUntil);
  }

  /** Returns the end of the longest secret that starts at `index`. */
  #findEnd(text: string, index: number, head: number): number | undefined {
    const longest = this.#byHead.get(head)?.find((one) => text.startsWith(one, index));
    return longest === undefined ? undefined : index + longest.length;
  }
}

const hashHead = (text: string, index: number): number => {
  let hash = 0;
  for (let i = 0; i < HEAD_CHARS; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(index + i)) >>> 0;
  return (hash ^ (hash >>> 16)) & (TABLE_SIZE - 1);
};
