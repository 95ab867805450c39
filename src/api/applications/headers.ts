// Filters the headers of requests to an app and of its responses. The caller's credentials are not forwarded, hop-by-hop headers apply to
// one connection only, and an app below the access URL cannot set headers for the whole origin (rules AX-6 to AX-8). Pure.
import { isInstruction, listConnectionHeaders, NODE_HEADERS } from "#base/network/node-headers.ts";
import { isServerCookie, SESSION_COOKIE, UPSTREAM_COOKIE } from "../http/cookies.ts";
import { SESSION_HEADER } from "../http/identify.ts";
import { WAIT_PARAMETER } from "./opening.ts";

/**
 * Set when a person has chosen to open an app below the access URL although it wants its own host: first as a query parameter, then as a
 * cookie.
 */
export const BY_PATH = "service_app_by_path";

const SERVER_QUERY_PARAMETERS = new Set([SESSION_COOKIE, UPSTREAM_COOKIE, BY_PATH, WAIT_PARAMETER]);
const SERVER_HEADERS = new Set([SESSION_HEADER.toLowerCase(), "coder-session-token"]);
/** The format of an API key (facts/platform 8.2). */
export const API_KEY_FORMAT = /^[A-Za-z0-9]{10}-[A-Za-z0-9]{22}$/;

const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Counts the Slipway servers that a request has passed. Without it, a request to a port that leads back here would loop forever. */
export const HOPS_HEADER = "slipway-hops";
const MAX_HOPS = 4;

const countHops = (headers: Headers): number => {
  const hops = headers.get(HOPS_HEADER);
  if (hops === null) return 0;
  return /^\d$/.test(hops) ? Number(hops) : MAX_HOPS;
};

/** Returns whether a request has passed through apps or ports too often. */
export const isLoop = (headers: Headers): boolean => countHops(headers) >= MAX_HOPS;

/** Headers that this server replaces, or that are meant only for this server. */
const DROPPED_HEADERS = new Set([HOPS_HEADER, "forwarded", "x-real-ip", "expect", "http2-settings", "content-length"]);

export type ForwardedClient = {
  /** The client's address. */
  readonly address: string;
  readonly protocol: string;
  /** The path where the app is mounted, if not the root. */
  readonly prefix: string;
};

type Pair = readonly [string, string];

/** Returns the headers of the request to the app. */
export const toAppHeaders = (source: Headers, { address, protocol, prefix }: ForwardedClient): Pair[] => {
  const hopByHop = listConnectionHeaders(source.get("connection"));
  const sent: Pair[] = [];
  for (const [name, value] of source) {
    if (HOP_BY_HOP.has(name) || DROPPED_HEADERS.has(name) || SERVER_HEADERS.has(name) || NODE_HEADERS.has(name))
      continue;
    if ((hopByHop.has(name) && name !== "host") || name.startsWith("x-forwarded-")) continue;
    if (name === "authorization" && isApiKeyBearer(value)) continue;
    const keptValue = name === "cookie" ? removeOwnCookies(value) : value;
    if (keptValue !== "") sent.push([name, keptValue]);
  }
  sent.push(["x-forwarded-for", address], ["x-forwarded-proto", protocol.replace(":", "")]);
  sent.push(["x-forwarded-host", source.get("host") ?? ""]);
  sent.push([HOPS_HEADER, String(countHops(source) + 1)]);
  if (prefix !== "") sent.push(["x-forwarded-prefix", prefix]);
  return sent;
};

const isApiKeyBearer = (value: string): boolean =>
  API_KEY_FORMAT.test(/^bearer\s+(.*)$/i.exec(value)?.[1]?.trim() ?? "");

const removeOwnCookies = (cookies: string): string =>
  cookies
    .split(";")
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie !== "" && !isSlipwayCookie(parseCookieName(cookie)))
    .join("; ");

const isSlipwayCookie = (name: string): boolean => name === BY_PATH || isServerCookie(name);

const parseCookieName = (cookie: string): string => cookie.slice(0, Math.max(0, cookie.indexOf("="))).trim();

/** Returns the query without Slipway's credentials and otherwise unchanged. Includes the question mark, or is empty. */
export const removeOwnQuery = (query: string): string => removePairs(query, isSlipwayPair);

/** Returns the query without the pairs that `isRemoved` matches, otherwise byte for byte unchanged. */
export const removePairs = (query: string, isRemoved: (pair: string) => boolean): string => {
  const pairs = query.slice(1).split("&");
  const keptPairs = pairs.filter((pair) => !isRemoved(pair));
  if (keptPairs.length === pairs.length) return query;
  return keptPairs.length === 0 ? "" : `?${keptPairs.join("&")}`;
};

const isSlipwayPair = (pair: string): boolean => {
  const [[name, value] = ["", ""]] = new URLSearchParams(pair);
  return SERVER_QUERY_PARAMETERS.has(name) || (name === "access_token" && API_KEY_FORMAT.test(value));
};

/** Headers an app may set on its own host but not below the access URL, where they would apply to the whole origin. */
const ORIGIN_WIDE = new Set(["strict-transport-security", "public-key-pins", "nel", "report-to"]);

/**
 * Which pages may load a response as a script, an image or data: all pages; the app's own; or, for this request, pages of the workspace's
 * apps.
 */
export type SubresourcePolicy = "open" | "own" | "workspace";

type ResponseContext = {
  /** Where the app is mounted below the access URL; empty on a host of its own. */
  readonly prefix: string;
  /** Its pages get an opaque origin: below the access URL, a script could otherwise act as anyone who opens it. */
  readonly isSandboxed: boolean;
  readonly subresources: SubresourcePolicy;
  /** The person the response is for; undefined when no sign-in was required. */
  readonly appCaller: object | undefined;
};

/** Returns the headers of the response. A response made for one person must not be cached for others. */
export const toBrowserHeaders = (
  source: Headers,
  { prefix, isSandboxed, appCaller, subresources }: ResponseContext,
): Headers => {
  const hopByHop = listConnectionHeaders(source.get("connection"));
  const headers = new Headers();
  for (const [name, value] of source) {
    if (HOP_BY_HOP.has(name) || hopByHop.has(name) || name === "alt-svc" || name === "set-cookie") continue;
    // Browsers would clear the cookies of the whole domain, including the server's.
    if (name === "clear-site-data" || isInstruction(name)) continue;
    if (prefix !== "" && name === "service-worker-allowed") {
      headers.append(name, limitScope(prefix, value));
      continue;
    }
    if (prefix !== "" && ORIGIN_WIDE.has(name)) continue;
    headers.append(name, value);
  }
  for (const cookie of source.getSetCookie()) {
    const limitedCookie = limitCookie(cookie, prefix);
    if (limitedCookie !== undefined) headers.append("set-cookie", limitedCookie);
  }
  if (isSandboxed) headers.append("content-security-policy", SANDBOX);
  if (!/(^|[\s,])(cookie|\*)($|[\s,])/i.test(headers.get("vary") ?? "")) headers.append("vary", "Cookie");
  if (appCaller) forbidSharedCaching(headers);
  if (subresources !== "open") limitSubresources(headers, subresources);
  return headers;
};

/**
 * Makes browsers refuse the response as a script or image of other apps' pages. The server refuses such requests, but requests that
 * the browser answers from its cache never reach it, and without TLS they do not say what they are for.
 */
const limitSubresources = (headers: Headers, policy: "own" | "workspace"): void => {
  headers.set("cross-origin-resource-policy", policy === "own" ? "same-origin" : "same-site");
  if (policy === "workspace") headers.set("cache-control", "no-store");
  headers.append("vary", "Sec-Fetch-Site");
};

/** Limits the scope of an app's service worker to the app's own path, because the origin belongs to Slipway. */
const limitScope = (prefix: string, value: string): string => {
  const path = URL.canParse(value, "http://app") ? new URL(value, "http://app").pathname : "/";
  return path === prefix || path.startsWith(`${prefix}/`) ? path : `${prefix}${path}`;
};

/** Leaves the cache lifetime to the app but forbids shared caches. */
const forbidSharedCaching = (headers: Headers): void => {
  const directives = (headers.get("cache-control") ?? "").split(",").map((one) => one.trim());
  const keptDirectives = directives.filter(
    (one) => one !== "" && !/^(public|private(=.*)?|s-maxage=.*|proxy-revalidate)$/i.test(one),
  );
  headers.set("cache-control", ["private", ...keptDirectives].join(", "));
};

/** Scripts run without an origin, so they cannot use Slipway's cookies or API. */
const SANDBOX = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";

/** Restricts an app's cookie to its own host and path. Returns undefined for a cookie with one of Slipway's names. */
const limitCookie = (cookie: string, prefix: string): string | undefined => {
  const [pair = "", ...attributes] = cookie.split(";").map((part) => part.trim());
  // For a cookie without a name, browsers send only the value, which can look like a name.
  if (parseCookieName(pair) === "" || isSlipwayCookie(parseCookieName(pair))) return undefined;
  const keptAttributes = attributes.filter((one) => one !== "" && !/^domain\s*(=|$)/i.test(one));
  if (prefix === "") return [pair, ...keptAttributes].join("; ");
  // Browsers reject this prefix with any path other than the root.
  if (parseCookieName(pair).startsWith("__Host-")) return undefined;
  const path = keptAttributes.find((one) => /^path\s*=/i.test(one))?.replace(/^path\s*=\s*/i, "");
  const isBelowPrefix = path === prefix || path?.startsWith(`${prefix}/`);
  const limitedPath = isBelowPrefix ? path : `${prefix}${path?.startsWith("/") ? path : "/"}`;
  return [pair, ...keptAttributes.filter((one) => !/^path\s*(=|$)/i.test(one)), `Path=${limitedPath}`].join("; ");
};
