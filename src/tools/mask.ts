// Removes secrets that the server knows from tool results before they are shown or stored: agent tokens, the owner's sessions and tokens,
// tokens of linked accounts, keys of model providers (rule TO-21). A secret known as text is also matched in common encodings; one known
// only by its digest only in plain form. Pure.
import { sha256 } from "#base/ids.ts";
import { listEncodings } from "#base/secrets/spellings.ts";
import type { ToolResult } from "./result.ts";

/** The known secrets: texts, or only digests (SHA-256, hex). */
export type ChatSecrets = {
  readonly texts: readonly string[];
  /** Digests of agent tokens, which are UUIDs. */
  readonly agent_tokens: ReadonlySet<string>;
  /** Sessions and tokens, `<id>-<secret>`: the ID and the secret's digest. */
  readonly keys: ReadonlyMap<string, string>;
};

export const HIDDEN = "[hidden]";

/** Shorter secrets could match by accident. */
const MIN_SECRET_CHARS = 8;
/** Maximum number of secrets, and of characters of each, to limit the cost of a call. */
const MAX_TEXTS = 200;
const MAX_LENGTH = 16_384;
/** Longer ones are matched only in plain form: each line of their base64 would be a separate text. */
const MAX_ENCODED = 1_024;
/** Maximum number of texts including all encodings. */
const MAX_SPELLINGS = 4_000;
const KEY_ID_CHARS = 10;
const KEY_SECRET_CHARS = 22;
const KEY_CHARS = KEY_ID_CHARS + 1 + KEY_SECRET_CHARS;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
const UUID_LENGTH = 36;

export class SecretMask {
  readonly #texts: readonly string[];
  readonly #secrets: ChatSecrets;

  constructor(secrets: ChatSecrets) {
    this.#secrets = secrets;
    const long = secrets.texts.filter(({ length }) => length >= MIN_SECRET_CHARS && length <= MAX_LENGTH);
    // A secret may contain another, so the longer one is replaced first.
    const plain = [...new Set(long)].sort((a, b) => b.length - a.length).slice(0, MAX_TEXTS);
    const encoded = plain.filter(({ length }) => length <= MAX_ENCODED).flatMap(listEncodings);
    const all = new Set([...plain, ...encoded.filter(({ length }) => length >= MIN_SECRET_CHARS)]);
    this.#texts = [...all].slice(0, MAX_SPELLINGS).sort((a, b) => b.length - a.length);
  }

  /** Returns the text with every secret replaced by `[hidden]`. */
  text(text: string): string {
    let hidden = text;
    for (const secret of this.#texts) if (hidden.includes(secret)) hidden = hidden.replaceAll(secret, HIDDEN);
    return this.#maskKeys(this.#maskAgentTokens(hidden));
  }

  /** Replaces secrets in all texts of a result, including member names. */
  result<T extends ToolResult>(result: T): T {
    return this.#maskDeep(result) as T;
  }

  /** Returns a mask for streamed text, in which a secret may be split at any point. */
  stream(): MaskedStream {
    return new MaskedStream(this);
  }

  /** Returns the position from which the text could be the start of a longer secret; its length if none exists. */
  findOpenStart(text: string): number {
    let from = text.length;
    const longest = this.#texts[0]?.length ?? 0;
    for (let at = Math.max(0, text.length - longest + 1); at < text.length; at++) {
      const tail = text.slice(at);
      if (this.#texts.some((secret) => secret.length > tail.length && secret.startsWith(tail))) {
        from = at;
        break;
      }
    }
    for (let at = Math.max(0, text.length - UUID_LENGTH + 1); at < from; at++) {
      if (this.#couldBeToken(text.slice(at)) || this.#couldBeKey(text.slice(at))) return at;
    }
    return from;
  }

  #maskAgentTokens(text: string): string {
    const { agent_tokens } = this.#secrets;
    if (agent_tokens.size === 0) return text;
    return text.replace(UUID, (found) => (agent_tokens.has(sha256(found.toLowerCase())) ? HIDDEN : found));
  }

  #maskKeys(text: string): string {
    const { keys } = this.#secrets;
    if (keys.size === 0) return text;
    const parts: string[] = [];
    let done = 0;
    for (let dash = text.indexOf("-"); dash >= 0; dash = text.indexOf("-", dash + 1)) {
      const from = dash - KEY_ID_CHARS;
      if (from < done) continue;
      const hash = keys.get(text.slice(from, dash));
      if (hash === undefined || sha256(text.slice(dash + 1, from + KEY_CHARS)) !== hash) continue;
      parts.push(text.slice(done, from), HIDDEN);
      done = from + KEY_CHARS;
    }
    return done === 0 ? text : parts.join("") + text.slice(done);
  }

  #couldBeToken(tail: string): boolean {
    if (this.#secrets.agent_tokens.size === 0 || tail.length >= UUID_LENGTH) return false;
    for (let i = 0; i < tail.length; i++) {
      const isDash = i === 8 || i === 13 || i === 18 || i === 23;
      if (isDash ? tail[i] !== "-" : !/[0-9a-fA-F]/.test(tail[i] as string)) return false;
    }
    return true;
  }

  #couldBeKey(tail: string): boolean {
    if (tail.length >= KEY_CHARS) return false;
    const id = tail.slice(0, KEY_ID_CHARS);
    if (tail.length > KEY_ID_CHARS) return tail[KEY_ID_CHARS] === "-" && this.#secrets.keys.has(id) && !/\s/.test(tail);
    for (const known of this.#secrets.keys.keys()) if (known.startsWith(id)) return true;
    return false;
  }

  #maskDeep(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value)) return value.map((one) => this.#maskDeep(one));
    if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [this.text(name), this.#maskDeep(one)]));
  }
}

/** Holds back a possible start of a secret until it is clear whether it is one. */
export class MaskedStream {
  readonly #mask: SecretMask;
  #held = "";

  constructor(mask: SecretMask) {
    this.#mask = mask;
  }

  /** Returns the text that can be shown by now. */
  push(piece: string): string {
    const text = this.#mask.text(this.#held + piece);
    const from = this.#mask.findOpenStart(text);
    this.#held = text.slice(from);
    return text.slice(0, from);
  }

  /** Returns the rest at the end of the stream. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}
