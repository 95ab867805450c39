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
      for (const one of new Set([secret.trim(), ...lines])) {
        if (one.length >= MIN_SECRET_CHARS) for (const encoding of listEncodings(one)) this.#addEncoding(encoding);
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
    for (let at = 0; at + MIN_SECRET_CHARS <= text.length; at++) {
      const head = hashHead(text, at);
      if (this.#headHashes[head] !== 1) continue;
      let end = this.#findEnd(text, at, head);
      if (end === undefined) continue;
      for (let inner = at + 1; inner < end && inner + MIN_SECRET_CHARS <= text.length; inner++) {
        end = Math.max(end, this.#findEnd(text, inner, hashHead(text, inner)) ?? 0);
      }
      masked += text.slice(maskedUntil, at) + HIDDEN_TEXT;
      maskedUntil = end;
      at = end - 1;
    }
    return maskedUntil === 0 ? text : masked + text.slice(maskedUntil);
  }

  /** Returns the end of the longest secret that starts at `at`. */
  #findEnd(text: string, at: number, head: number): number | undefined {
    const found = this.#byHead.get(head)?.find((one) => text.startsWith(one, at));
    return found === undefined ? undefined : at + found.length;
  }
}

const hashHead = (text: string, at: number): number => {
  let number = 0;
  for (let i = 0; i < HEAD_CHARS; i++) number = (Math.imul(number, 31) + text.charCodeAt(at + i)) >>> 0;
  return (number ^ (number >>> 16)) & (TABLE_SIZE - 1);
};
