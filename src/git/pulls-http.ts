// Requests to the API of a git host (rules PR-3, PR-4): with the owner's token, conditional if a response is cached, and honoring the
// host's rate limits. Requests go only to the configured provider's host, through outbound.ts.

import type { Clock } from "#base/clock.ts";
import { parseJson } from "#base/json/read.ts";
import { type Outbound, type OutboundAnswer, OutboundError } from "#base/outbound.ts";

/** The reason why there is no response. Requests must not be retried before `until`, in milliseconds since 1970. */
export class PullError extends Error {
  override readonly name = "PullError";
  readonly kind: "limited" | "denied" | "missing" | "failed";
  readonly until: number;

  constructor(kind: PullError["kind"], message: string, until = 0) {
    super(message);
    this.kind = kind;
    this.until = until;
  }
}

export type CachedResponses = Readonly<
  Record<string, { readonly path: string; readonly etag: string; readonly value: unknown }>
>;

export type PullHttpOptions = {
  readonly outbound: Outbound;
  readonly clock: Clock;
  /** The API's base URL without a trailing slash. */
  readonly api: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Cached responses. */
  readonly kept?: CachedResponses;
  readonly signal?: AbortSignal;
  /** Called when the host's rate limit blocks requests, until the given time. */
  readonly rest: (until: number) => void;
};

/** Default wait if a host's rate limit response has no time. */
const DEFAULT_RATE_LIMIT_MS = 60_000;
const MAX_RATE_LIMIT_MS = 24 * 3_600_000;

export class PullHttp {
  readonly #options: PullHttpOptions;
  readonly #kept: Record<string, { path: string; etag: string; value: unknown }> = {};

  constructor(options: PullHttpOptions) {
    this.#options = options;
  }

  /** Returns the responses worth caching. */
  get kept(): CachedResponses {
    return this.#kept;
  }

  /** Returns the result of `read` for the JSON response, or the cached one if it is unchanged. Throws PullError. */
  async get<T>(name: string, path: string, read: (json: unknown, headers: Headers) => T): Promise<T> {
    const cached = this.#options.kept?.[name];
    const etag = cached?.path === path ? cached.etag : "";
    const answer = await this.#request(path, { accept: this.#options.headers.accept ?? "application/json", etag });
    if (answer.status === 304 && cached) {
      this.#kept[name] = cached;
      return cached.value as T;
    }
    const value = read(parseAnswer(answer.text), answer.headers);
    const newEtag = answer.headers.get("etag") ?? "";
    if (newEtag !== "" && newEtag.length <= 512) this.#kept[name] = { path, etag: newEtag, value };
    return value;
  }

  /** Returns the JSON response without caching it. */
  async json(path: string): Promise<unknown> {
    return parseAnswer(await this.text(path, "application/json"));
  }

  /** Returns the raw body. */
  async text(path: string, accept: string): Promise<string> {
    return (await this.#request(path, { accept, etag: "" })).text;
  }

  async #request(path: string, { accept, etag }: { accept: string; etag: string }): Promise<OutboundAnswer> {
    const { outbound, api, headers, signal, rest } = this.#options;
    const condition: Record<string, string> = etag === "" ? {} : { "if-none-match": etag };
    let answer: OutboundAnswer;
    try {
      answer = await outbound.fetch(new URL(api + path), {
        headers: { ...headers, accept, ...condition },
        ...(signal ? { signal } : {}),
      });
    } catch (error) {
      if (error instanceof OutboundError) throw new PullError("failed", error.message);
      throw error;
    }
    const now = this.#options.clock.now();
    if (answer.status === 200 || (answer.status === 304 && etag !== "")) {
      if (readNumber(answer, REMAINING_HEADERS) === 0) rest(findResetTime(answer, now));
      return answer;
    }
    const refusal = toPullError(answer, now);
    if (refusal.kind === "limited") rest(refusal.until);
    throw refusal;
  }
}

const parseAnswer = (text: string): unknown => {
  try {
    return parseJson(text);
  } catch (error) {
    throw new PullError("failed", `The git host's response ${(error as Error).message}`);
  }
};

const REMAINING_HEADERS = ["x-ratelimit-remaining", "ratelimit-remaining"];
const RESET_HEADERS = ["x-ratelimit-reset", "ratelimit-reset"];

const toPullError = (answer: OutboundAnswer, now: number): PullError => {
  const { status, text } = answer;
  const isLimitReached =
    readNumber(answer, REMAINING_HEADERS) === 0 || answer.headers.has("retry-after") || /rate limit/i.test(text);
  if (status === 429 || (status === 403 && isLimitReached)) {
    return new PullError("limited", `The git host's rate limit is exceeded (${status}).`, findResetTime(answer, now));
  }
  if (status === 401 || status === 403) return new PullError("denied", `The git host denied access (${status}).`);
  if (status === 404 || status === 410) return new PullError("missing", "The git host did not find the resource.");
  return new PullError("failed", `The git host responded with status ${status}.`);
};

/** Returns when the rate limit ends, from the response or the default; at most a day from now. */
const findResetTime = (answer: OutboundAnswer, now: number): number => {
  const after = answer.headers.get("retry-after");
  const seconds = readNumber(answer, ["retry-after"]);
  const date = after === null ? Number.NaN : Date.parse(after);
  const reset = readNumber(answer, RESET_HEADERS);
  const until =
    seconds !== undefined
      ? now + seconds * 1_000
      : !Number.isNaN(date)
        ? date
        : reset !== undefined
          ? reset * 1_000
          : now + DEFAULT_RATE_LIMIT_MS;
  return Math.min(Math.max(until, now + 1_000), now + MAX_RATE_LIMIT_MS);
};

const readNumber = ({ headers }: OutboundAnswer, names: readonly string[]): number | undefined => {
  for (const name of names) {
    const text = headers.get(name);
    if (text !== null && /^\d{1,12}$/.test(text.trim())) return Number(text);
  }
  return undefined;
};
