// Sends requests to URLs from settings, responses or people; all such requests go through here. Every address of the hostname is checked
// and the connection is made to a checked address, so DNS rebinding has no effect. Redirects are never followed. Time and size are limited,
// also for compressed answers (rules EA-1 to EA-3). Rejects non-public addresses unless a setting allows their network.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Clock } from "./clock.ts";
import { classifyAddress } from "./network/address-place.ts";
import { markSideEffect } from "./network/current-request.ts";
import { describeNetworkError } from "./network/failure-words.ts";
import { requireActiveNode } from "./network/local-reads.ts";
import { NetworkList, NON_PUBLIC_NETWORKS } from "./network/networks.ts";
import { fetchPlain } from "./network/plain-fetch.ts";

/** Thrown when there is no usable response. `refused`: never sent. `failed`: no connection, a timeout, or a response that is too large. */
export class OutboundError extends Error {
  override readonly name = "OutboundError";
  readonly reason: "refused" | "failed";

  constructor(reason: OutboundError["reason"], message: string, cause?: unknown) {
    super(message, { cause });
    this.reason = reason;
  }
}

export type OutboundRequest = {
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array<ArrayBuffer>;
  /** Cancels the request. */
  signal?: AbortSignal;
};

/** The whole response; redirects are returned like any other response. */
export type OutboundAnswer = { readonly status: number; readonly headers: Headers; readonly text: string };

/** Returns every address of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export type OutboundOptions = {
  clock: Clock;
  /** Non-public networks that requests may go to, such as 10.0.0.0/8. */
  allowed: readonly string[];
  /** Whether requests may go to loopback and private networks: true when only people on this machine use the server. */
  reaches_private?: boolean;
  /** The setting with the allowed networks, for messages. */
  setting?: string;
  resolve?: Resolve;
  /** Milliseconds until a request times out. */
  timeout_ms?: number;
  /** Maximum bytes of a response that are read. */
  max_bytes?: number;
};

const systemResolve: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 1_048_576;
/** DNS timeout in milliseconds for checks that send no request. */
const LOOKUP_TIMEOUT_MS = 3_000;

export class Outbound {
  readonly #options: OutboundOptions;
  readonly #allowed: NetworkList;

  constructor(options: OutboundOptions) {
    this.#options = options;
    this.#allowed = new NetworkList(options.allowed);
  }

  /** Sends the request and reads the whole response. Throws OutboundError; its message names the host, never the query. */
  async fetch(url: URL, request: OutboundRequest = {}): Promise<OutboundAnswer> {
    // Only the active node may send: repeating a request could lose a response that is available only once, such as a token for a code.
    requireActiveNode();
    markSideEffect();
    const { clock, timeout_ms = TIMEOUT_MS } = this.#options;
    checkScheme(url);
    const timeout = new AbortController();
    const timer = clock.after(timeout_ms, () => timeout.abort());
    const signal = AbortSignal.any([timeout.signal, ...(request.signal ? [request.signal] : [])]);
    try {
      const address = await Promise.race([this.resolveAddress(url), rejectOnAbort(signal)]);
      return await this.#send(url, address, request, signal);
    } catch (error) {
      if (error instanceof OutboundError) throw error;
      if (timeout.signal.aborted) throw new OutboundError("failed", `${url.host} did not respond in time.`);
      throw toUnreachable(url.host, error);
    } finally {
      timer.cancel();
    }
  }

  /**
   * Sends the request and returns once the response headers have arrived. For streams, which have no known end: only `signal` limits the
   * time, and the body fails after `max_bytes`. Throws OutboundError.
   */
  async open(url: URL, init: BunFetchRequestInit = {}): Promise<Response> {
    requireActiveNode();
    markSideEffect();
    const { max_bytes = MAX_BYTES } = this.#options;
    checkScheme(url);
    try {
      const address = await this.resolveAddress(url);
      const headers = Object.fromEntries(new Headers(init.headers));
      const response = await fetchPlain(...toFetchArguments(url, address, { ...init, headers }));
      const body = response.body?.pipeThrough(limitBytes(url, max_bytes)) ?? null;
      const { status, statusText } = response;
      return new Response(body, { status, statusText, headers: response.headers });
    } catch (error) {
      if (error instanceof OutboundError || init.signal?.aborted) throw error;
      throw toUnreachable(url.host, error);
    }
  }

  /**
   * Returns why a request to this URL would currently be rejected; undefined if it would be sent, or its name cannot be resolved
   * now. For callers that store the URL for later.
   */
  async findRefusal(url: URL): Promise<string | undefined> {
    const timeout = new AbortController();
    const timer = this.#options.clock.after(LOOKUP_TIMEOUT_MS, () =>
      timeout.abort(new OutboundError("failed", "no answer")),
    );
    try {
      checkScheme(url);
      await Promise.race([this.resolveAddress(url), rejectOnAbort(timeout.signal)]);
      return undefined;
    } catch (error) {
      return error instanceof OutboundError && error.reason === "refused" ? error.message : undefined;
    } finally {
      timer.cancel();
    }
  }

  /**
   * Returns an allowed address of the host, for a program that makes its own connection. All addresses of the host must be allowed: a name
   * with one address that is not allowed is rejected. Throws OutboundError.
   */
  async resolveAddress(url: URL): Promise<string> {
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const addresses = isIP(host) ? [host] : await this.#resolveName(url, host);
    const [first] = addresses;
    if (first === undefined) throw new OutboundError("failed", `${host} has no address.`);
    const forbidden = addresses.find((address) => !this.#canCall(address));
    if (forbidden === undefined) return first;
    throw new OutboundError(
      "refused",
      // Does not show the address: users who can enter URLs must not learn the addresses of internal names.
      `${host} is not a public address. If it is yours, add its network to the setting ${this.#options.setting ?? "allowed_private_networks"}.`,
    );
  }

  async #resolveName({ host }: URL, name: string): Promise<readonly string[]> {
    try {
      return await (this.#options.resolve ?? systemResolve)(name);
    } catch (error) {
      throw toUnreachable(host, error);
    }
  }

  #canCall(address: string): boolean {
    if (isIP(address) === 0) return false;
    if (!NON_PUBLIC_NETWORKS.has(address) || this.#allowed.has(address)) return true;
    return this.#options.reaches_private === true && classifyAddress(address) === "private";
  }

  async #send(url: URL, address: string, request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer> {
    const response = await fetchPlain(...toFetchArguments(url, address, { ...request, signal }));
    return { status: response.status, headers: response.headers, text: await this.#read(url, response) };
  }

  async #read(url: URL, response: Response): Promise<string> {
    const { max_bytes = MAX_BYTES } = this.#options;
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.byteLength;
      if (size > max_bytes) throw new OutboundError("failed", `${url.host} answered more than ${max_bytes} bytes.`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  }
}

const toUnreachable = (host: string, error: unknown): OutboundError =>
  new OutboundError("failed", `${host} cannot be reached (${describeNetworkError(error)}).`, error);

const checkScheme = (url: URL): void => {
  if (url.protocol === "https:" || url.protocol === "http:") return;
  throw new OutboundError("refused", `${url.protocol}// is not supported: use http or https.`);
};

/** Returns the arguments of `fetch` that connect to exactly this address. */
const toFetchArguments = (
  url: URL,
  address: string,
  {
    headers,
    tls,
    ...request
  }: Omit<BunFetchRequestInit, "headers"> & { readonly headers?: OutboundRequest["headers"] },
): [URL, RequestInit] => {
  const target = new URL(url);
  target.username = "";
  target.password = "";
  target.hostname = isIP(address) === 6 ? `[${address}]` : address;
  // The certificate must match the hostname, although the connection is made to the address.
  const name = url.protocol === "https:" && isIP(url.hostname) === 0 ? { serverName: url.hostname } : undefined;
  const init = {
    ...request,
    headers: { "user-agent": "slipway", ...headers, host: url.host },
    redirect: "manual",
    ...(tls || name ? { tls: { ...tls, ...name } } : {}),
  };
  // Bun's types lack serverName; its fetch checks the certificate against it.
  return [target, init as RequestInit];
};

const limitBytes = (url: URL, max_bytes: number) => {
  let size = 0;
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      size += chunk.byteLength;
      if (size <= max_bytes) controller.enqueue(chunk);
      else controller.error(new OutboundError("failed", `${url.host} answered more than ${max_bytes} bytes.`));
    },
  });
};

const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
