// The guarded fetch for all requests to providers. An administrator's URL could lead anywhere, so every name is resolved and every address
// checked before connecting, the connection goes to the checked address, and redirects are not followed (rules MO-20 to MO-22).
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Clock } from "#base/clock.ts";
import { classifyAddress } from "#base/network/address-place.ts";
import { markSideEffect } from "#base/network/current-request.ts";
import { fetchPlain } from "#base/network/plain-fetch.ts";
import { getCurrentSpan } from "#base/spans.ts";
import { ModelError } from "./model.ts";

export type GuardedFetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** The addresses beyond the public internet that may be reached. */
export type ReachableAddresses = {
  /** Allows loopback and private networks; set if only users of this machine use the server. */
  readonly private: boolean;
  /** Hosts that may have any address, as written in base URLs. */
  readonly hosts: readonly string[];
  /** Propagates the trace context to the servers. */
  readonly continuesTrace?: boolean;
};

export type Resolve = (host: string) => Promise<readonly string[]>;

const resolveByDns: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** Returns a fetch for provider packages. Throws `ModelError` of the kind `config` for forbidden addresses. */
export const createGuardedFetch =
  (may: ReachableAddresses, resolve: Resolve = resolveByDns): GuardedFetch =>
  async (input, init = {}) => {
    markSideEffect();
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = new Headers(init.headers);
    const target = await resolveAllowedUrl(url, may, resolve);
    if (target.host !== url.host) headers.set("host", url.host);
    if (may.continuesTrace)
      for (const [name, value] of Object.entries(getCurrentSpan()?.headers ?? {})) headers.set(name, value);
    // Bun closes connections that are silent for five minutes; the turn has its own timeout.
    const options = { ...init, headers, redirect: "manual", timeout: false } as RequestInit;
    const bytes = toLargeBody(init.body);
    if (bytes) {
      headers.set("content-length", String(bytes.byteLength));
      options.body = readPieces(bytes) as unknown as ReadableStream;
    }
    return fetchPlain(target, options);
  };

/** The runtime keeps a body until its answer has ended, which may take hours. It drops the pieces of a larger one once they are sent. */
const LARGE_BODY_BYTES = 256 * 1024;
const PIECE_BYTES = 64 * 1024;

/** Returns the bytes of a large text or of large bytes; undefined for other bodies. */
const toLargeBody = (body: RequestInit["body"]): Uint8Array | undefined => {
  if (typeof body === "string" && body.length > LARGE_BODY_BYTES) return new TextEncoder().encode(body);
  return body instanceof Uint8Array && body.byteLength > LARGE_BODY_BYTES ? body : undefined;
};

async function* readPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/** Timeout of a lookup that is only a check. */
const LOOKUP_TIMEOUT_MS = 3_000;

/**
 * Returns why requests to this URL are not allowed; undefined if they are, or if its name does not resolve now, which may change. For
 * validating a URL before it is stored.
 */
export const findRefusal = async (
  url: URL,
  {
    clock,
    may,
    resolve = resolveByDns,
  }: { readonly clock: Clock; readonly may: ReachableAddresses; readonly resolve?: Resolve },
): Promise<string | undefined> => {
  const timeout = Promise.withResolvers<undefined>();
  const timer = clock.after(LOOKUP_TIMEOUT_MS, () => timeout.resolve(undefined));
  const refusal = resolveAllowedUrl(url, may, resolve).then(
    () => undefined,
    (error) => (error instanceof ModelError ? error.message : undefined),
  );
  return Promise.race([refusal, timeout.promise]).finally(() => timer.cancel());
};

const resolveAllowedUrl = async (url: URL, may: ReachableAddresses, resolve: Resolve): Promise<URL> => {
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw toConfigError(`${url.protocol} is not http or https`);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = isIP(host) ? [host] : await resolve(host);
  const isNamed = may.hosts.some((one) => one.replace(/^\[|\]$/g, "").toLowerCase() === host.toLowerCase());
  for (const address of isNamed ? [] : addresses) {
    const network = classifyAddress(address);
    if (network === "never" || (network === "private" && !may.private)) {
      throw toConfigError(`${host} is not a public address. To allow it, add it to the setting model_hosts`);
    }
  }
  // With TLS the certificate authenticates the server; without it the name could resolve differently by now.
  const [address] = addresses;
  if (url.protocol === "https:" || isIP(host) || address === undefined) return url;
  const target = new URL(url);
  target.hostname = isIP(address) === 6 ? `[${address}]` : address;
  return target;
};

const toConfigError = (detail: string): ModelError =>
  new ModelError("config", `The base URL cannot be used: ${detail}.`);
