// The only way from here to a provider. An address an administrator may enter could lead anywhere, so every name is resolved and every
// address looked at before a connection is made, the connection goes to the address that was looked at, and no redirect is followed
// (rules MO-20 to MO-22).
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Clock } from "#base/clock.ts";
import { placeOfAddress } from "#base/network/address-place.ts";
import { beginOutside } from "#base/network/request-part.ts";
import { currentSpan } from "#base/spans.ts";
import { ModelError } from "./model.ts";

export type GuardedFetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** What beyond the public internet may be reached. */
export type MayReach = {
  /** Loopback and private networks: where only people of this machine use the server. */
  readonly private: boolean;
  /** Hosts that may stand anywhere, as they are written in base URLs. */
  readonly hosts: readonly string[];
  /** Servers that are reached learn of which trace the call is part. */
  readonly continuesTrace?: boolean;
};

export type Resolve = (host: string) => Promise<readonly string[]>;

const resolveByDns: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** A fetch for provider packages. Throws `ModelError` of the kind `config` for what may not be reached. */
export const guardedFetch =
  (may: MayReach, resolve: Resolve = resolveByDns): GuardedFetch =>
  async (input, init = {}) => {
    beginOutside();
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = new Headers(init.headers);
    const target = await checkedUrl(url, may, resolve);
    if (target.host !== url.host) headers.set("host", url.host);
    if (may.continuesTrace)
      for (const [name, value] of Object.entries(currentSpan()?.headers ?? {})) headers.set(name, value);
    // Bun ends a connection that is silent for five minutes; how long is too long is decided by the turn.
    const options = { ...init, headers, redirect: "manual", timeout: false } as RequestInit;
    return fetch(target, options);
  };

/** Milliseconds in which a name is looked up for someone who only wants to know. */
const LOOKUP_MS = 3_000;

/**
 * Why no model could be asked at this URL as things are; undefined when it could, or when its name leads nowhere now: it may tomorrow. For
 * anyone who keeps the URL for later.
 */
export const findRefusal = async (
  url: URL,
  { clock, may, resolve = resolveByDns }: { readonly clock: Clock; readonly may: MayReach; readonly resolve?: Resolve },
): Promise<string | undefined> => {
  const late = Promise.withResolvers<undefined>();
  const limit = clock.after(LOOKUP_MS, () => late.resolve(undefined));
  const looked = checkedUrl(url, may, resolve).then(
    () => undefined,
    (error) => (error instanceof ModelError ? error.message : undefined),
  );
  return Promise.race([looked, late.promise]).finally(() => limit.cancel());
};

const checkedUrl = async (url: URL, may: MayReach, resolve: Resolve): Promise<URL> => {
  if (url.protocol !== "http:" && url.protocol !== "https:") throw refused(`${url.protocol} is not http or https`);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = isIP(host) ? [host] : await resolve(host);
  const isNamed = may.hosts.some((one) => one.replace(/^\[|\]$/g, "").toLowerCase() === host.toLowerCase());
  for (const address of isNamed ? [] : addresses) {
    const place = placeOfAddress(address);
    if (place === "never" || (place === "private" && !may.private)) {
      throw refused(`${host} is not a public address. To allow it, add it to the setting model_hosts`);
    }
  }
  // With TLS the certificate proves who answers; without it the name could lead elsewhere by now.
  const [address] = addresses;
  if (url.protocol === "https:" || isIP(host) || address === undefined) return url;
  const target = new URL(url);
  target.hostname = isIP(address) === 6 ? `[${address}]` : address;
  return target;
};

const refused = (detail: string): ModelError => new ModelError("config", `The base URL cannot be used: ${detail}.`);
