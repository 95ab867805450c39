// Removes secrets that the server knows from tool results before they are shown or stored: agent tokens, the owner's sessions and tokens,
// tokens of linked accounts, SSH keys, sensitive variables of templates, keys of model providers (rule TO-21). A secret known as text is also
// matched in common encodings, and its lines and values one by one; one known only by its digest only in plain form. Pure.
import { sha256 } from "#base/ids.ts";
import { nextTurn } from "#base/retry.ts";
import { MIN_FOUND_CHARS, type Span, TextFinder } from "#base/secrets/finder.ts";
import { listSecretParts } from "#base/secrets/parts.ts";
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

/** Maximum number of secrets, and of characters of each, to limit the cost of a call. Shorter secrets could match by accident. */
const MAX_TEXTS = 1_000;
const MAX_SECRET_CHARS = 16_384;
/** Longer secrets are matched only in plain form: each line of their base64 would be a separate text. */
const MAX_ENCODED_CHARS = 1_024;
/** Maximum number of lines and values of secrets, and of texts including all encodings. */
const MAX_PARTS = 16_384;
const MAX_SPELLINGS = 32_768;
const KEY_ID_CHARS = 10;
const KEY_SECRET_CHARS = 22;
const KEY_CHARS = KEY_ID_CHARS + 1 + KEY_SECRET_CHARS;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
const UUID_CHARS = 36;
/** Characters that are masked without a pause. */
const PIECE_CHARS = 131_072;
const LAST_UUID_PART = 12;

export class SecretMask {
  readonly #finder: TextFinder;
  readonly #secrets: ChatSecrets;

  /** With `whole`, lines and values of secrets are masked only within the entire secret. */
  constructor(secrets: ChatSecrets, { whole = false }: { readonly whole?: boolean } = {}) {
    this.#secrets = secrets;
    this.#finder = new TextFinder(listSpellings(secrets.texts, whole ? () => [] : listSecretParts));
  }

  /** Returns the text with every secret replaced by `[hidden]`. Secrets that overlap are replaced together. */
  text(text: string): string {
    return replaceSpans(text, this.#findSpans(text));
  }

  /** Like `text`, for text of any length: other work proceeds in between. */
  async longText(text: string): Promise<string> {
    const stream = this.stream();
    const parts: string[] = [];
    for (let at = 0; at < text.length; at += PIECE_CHARS) {
      parts.push(stream.push(text.slice(at, at + PIECE_CHARS)));
      await nextTurn();
    }
    return parts.join("") + stream.end();
  }

  /** Returns all lines of the text. Each line of a secret is replaced separately, so that the number of lines stays the same. */
  lines(text: string): string[] {
    const hideLines = (secret: string): string => secret.replace(/[^\n]+/g, HIDDEN);
    return replaceSpans(text, this.#findSpans(text), hideLines).split("\n");
  }

  /** Like `longText`, but keeps every line, as `lines` does. */
  async longLines(text: string): Promise<string> {
    const parts: string[] = [];
    for (let at = 0; at < text.length; ) {
      const end = text.indexOf("\n", at + PIECE_CHARS) + 1 || text.length;
      parts.push(this.lines(text.slice(at, end)).join("\n"));
      at = end;
      await nextTurn();
    }
    return parts.join("");
  }

  /** Like `text`, but without the end of a text in progress that could be the start of a secret. */
  maskPartial(text: string): string {
    return this.stream().push(text);
  }

  /** Replaces secrets in all texts of a result, including member names. */
  result<T extends ToolResult>(result: T): T {
    return this.#maskDeep(result) as T;
  }

  /** Returns a mask for streamed text, in which a secret may be split at any point. */
  stream(): MaskedStream {
    return new MaskedStream((text) => ({ spans: this.#findSpans(text), open: this.#findOpenStart(text) }));
  }

  /** Returns the position from which the text could be the start of a longer secret; its length if none exists. */
  #findOpenStart(text: string): number {
    const from = this.#finder.findOpenStart(text);
    for (let at = Math.max(0, text.length - UUID_CHARS + 1); at < from; at++) {
      if (this.#couldBeToken(text.slice(at)) || this.#couldBeKey(text.slice(at))) return at;
    }
    return from;
  }

  /** Returns the secrets of the text in order, without overlaps. */
  #findSpans(text: string): Span[] {
    const found = [...this.#finder.findAll(text), ...this.#findAgentTokens(text), ...this.#findKeys(text)];
    const merged: { from: number; to: number }[] = [];
    for (const { from, to } of found.sort((a, b) => a.from - b.from)) {
      const last = merged.at(-1);
      if (last && from < last.to) last.to = Math.max(last.to, to);
      else merged.push({ from, to });
    }
    return merged;
  }

  #findAgentTokens(text: string): Span[] {
    const { agent_tokens } = this.#secrets;
    const spans: Span[] = [];
    if (agent_tokens.size === 0) return spans;
    const uuids = new RegExp(UUID);
    for (let found = uuids.exec(text); found; found = uuids.exec(text)) {
      const [uuid] = found;
      if (agent_tokens.has(sha256(uuid.toLowerCase()))) spans.push({ from: found.index, to: uuids.lastIndex });
      // The last digits of another UUID can be the first ones of a token.
      uuids.lastIndex -= LAST_UUID_PART;
    }
    return spans;
  }

  #findKeys(text: string): Span[] {
    const { keys } = this.#secrets;
    const spans: Span[] = [];
    if (keys.size === 0) return spans;
    for (let dash = text.indexOf("-"); dash >= 0; dash = text.indexOf("-", dash + 1)) {
      const from = dash - KEY_ID_CHARS;
      const hash = from < 0 ? undefined : keys.get(text.slice(from, dash));
      if (hash === undefined || sha256(text.slice(dash + 1, from + KEY_CHARS)) !== hash) continue;
      spans.push({ from, to: from + KEY_CHARS });
    }
    return spans;
  }

  #couldBeToken(tail: string): boolean {
    if (this.#secrets.agent_tokens.size === 0 || tail.length >= UUID_CHARS) return false;
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

/** Returns the texts to search for: all secrets, then their lines and values, then encodings of these as far as the limit allows. */
const listSpellings = (secrets: readonly string[], listParts: (secret: string) => readonly string[]): Set<string> => {
  const isSearchable = ({ length }: string): boolean => length >= MIN_FOUND_CHARS && length <= MAX_SECRET_CHARS;
  // Programs leave out the line end after a secret, or add one.
  const whole = [...new Set(secrets.flatMap((one) => [one, one.trim()]))].filter(isSearchable).slice(0, MAX_TEXTS);
  const parts = whole.flatMap(listParts).filter(isSearchable).slice(0, MAX_PARTS);
  const all = new Set([...whole, ...parts]);
  for (const one of [...all]) {
    if (all.size > MAX_SPELLINGS) break;
    if (one.length <= MAX_ENCODED_CHARS) for (const encoded of listEncodings(one)) all.add(encoded);
  }
  return all;
};

/** Returns the text from its second line, for a text whose beginning was cut off: the first line may be the end of a secret. */
export const skipCutLine = (text: string): string => {
  const end = text.indexOf("\n") + 1;
  return text.slice(end === 0 ? MAX_SECRET_CHARS : Math.min(end, MAX_SECRET_CHARS));
};

const replaceSpans = (
  text: string,
  spans: readonly Span[],
  hide: (secret: string) => string = () => HIDDEN,
): string => {
  if (spans.length === 0) return text;
  const parts: string[] = [];
  let copiedTo = 0;
  for (const { from, to } of spans) {
    parts.push(text.slice(copiedTo, from), hide(text.slice(from, to)));
    copiedTo = to;
  }
  return parts.join("") + text.slice(copiedTo);
};

type Search = (text: string) => { readonly spans: readonly Span[]; readonly open: number };

/** Holds back a possible start of a secret until it is clear whether it is one. */
export class MaskedStream {
  readonly #search: Search;
  #heldText = "";
  /** Number of held characters that are known to be of a secret, for which `[hidden]` has been shown. */
  #hiddenCount = 0;

  constructor(search: Search) {
    this.#search = search;
  }

  /** Returns the text that can be shown by now. */
  push(piece: string): string {
    return this.#show(piece, false);
  }

  /** Returns the remaining text at the end of the stream. */
  end(): string {
    return this.#show("", true);
  }

  /**
   * Returns the remaining text of a stream that is not read to its end. Hides text that could be the start of a secret, unless it is short.
   */
  leave(): string {
    const isShort = this.#heldText.length < MIN_FOUND_CHARS;
    const rest = isShort ? this.end() : this.#hiddenCount > 0 ? "" : HIDDEN;
    this.#heldText = "";
    this.#hiddenCount = 0;
    return rest;
  }

  #show(piece: string, isEnd: boolean): string {
    const text = this.#heldText + piece;
    const { spans, open } = this.#search(text);
    const until = isEnd ? text.length : open;
    const parts: string[] = [];
    let copiedTo = 0;
    let hidden = this.#hiddenCount;
    for (const { from, to } of spans) {
      if (from >= until) break;
      if (from >= hidden) parts.push(text.slice(Math.max(copiedTo, hidden), from), HIDDEN);
      hidden = Math.max(hidden, to);
      copiedTo = hidden;
    }
    parts.push(text.slice(Math.min(until, Math.max(copiedTo, hidden)), until));
    this.#heldText = text.slice(until);
    this.#hiddenCount = Math.max(0, hidden - until);
    return parts.join("");
  }
}
