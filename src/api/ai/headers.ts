// Decides which headers of a model call are sent to the provider and which are returned. Only headers of the APIs go out, and headers that
// reveal the provider account are not returned. Pure.

import { isInstruction, listConnectionHeaders } from "#base/network/node-headers.ts";
import { trimEnd } from "#base/text/trim.ts";
import type { ConfiguredProvider } from "#src/llm/configured-model.ts";
import { CallBodyError } from "#src/llm/gateway/call-body.ts";
import type { Dialect } from "#src/llm/gateway/endpoint.ts";

const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/**
 * Headers that model APIs and their clients define. Others are dropped, because a provider can be a gateway that takes its instructions
 * from headers, such as another host to send the organization's key to. Credentials and account IDs are never passed on.
 */
const PASSED_REQUEST_HEADERS = new Set([
  ...["accept", "accept-language", "content-type", "user-agent", "idempotency-key", "traceparent", "tracestate"],
  ...["x-request-id", "x-client-request-id", "x-server-timeout", "x-goog-api-client", "x-app", "openai-beta"],
  ...["anthropic-version", "anthropic-beta", "anthropic-dangerous-direct-browser-access"],
  // Codex.
  ...["originator", "version", "session_id", "session-id", "conversation_id"],
]);
const PASSED_REQUEST_PREFIX = /^(?:x-stainless-|x-codex-)/;

/** Headers that change what a browser does on the server's own origin. The server sets its own. */
const ORIGIN_HEADERS =
  /^(?:content-security-policy|x-frame-options|x-content-type-options|x-xss-protection|(?:permissions|feature|document|referrer)-policy|cross-origin-|origin-|access-control-|timing-allow-origin|report-to|reporting-endpoints|nel$|public-key-pins|expect-ct|set-cookie|refresh|sec-|speculation-rules|supports-loading-mode|x-dns-prefetch-control|x-permitted-cross-domain-policies)/;

/** Headers that let a proxy store a response, or respond from its cache. */
const CACHE_HEADERS =
  /^(?:cache-control|pragma|expires|age|etag|last-modified|vary|surrogate-|edge-|cdn-|.*-cache-control$)/;

const DROPPED_RESPONSE_HEADERS = new Set([
  ...HOP_BY_HOP,
  ...["content-length", "content-encoding", "content-type", "strict-transport-security", "alt-svc", "server", "via"],
  // Headers that would redirect a browser, make it store something, or sign it in.
  ...["location", "content-location", "link", "content-disposition", "clear-site-data"],
  ...["www-authenticate", "service-worker-allowed", "sourcemap", "x-sourcemap"],
  ...["openai-organization", "openai-project", "anthropic-organization-id"],
]);

/** The content types of model APIs. A response of any other type is returned as plain text, so that no browser shows it as a page. */
const ANSWER_TYPE =
  /^(?:application\/(?:[a-z0-9.-]+\+)?json|application\/x-ndjson|text\/event-stream|text\/plain)(?:\s*;|$)/i;
const PLAIN_TEXT = "text/plain; charset=utf-8";

/** Headers of every response of the gateway: browsers do not show it as a page of this server, and proxies do not store it. */
const BROWSER_HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

/** Adds the server's own headers for browsers to a response and returns it. */
export const addBrowserHeaders = (response: Response): Response => {
  for (const [name, value] of Object.entries(BROWSER_HEADERS)) response.headers.set(name, value);
  return response;
};

/** Anthropic's API rejects calls without a version. */
const ANTHROPIC_VERSION = "2023-06-01";

/** Returns the headers for the provider, with its key. */
export const toProviderHeaders = (source: Headers, dialect: Dialect, key: string): Headers => {
  const headers = new Headers();
  const hopByHop = listConnectionHeaders(source.get("connection"));
  for (const [name, value] of source) {
    const isPassed = PASSED_REQUEST_HEADERS.has(name) || PASSED_REQUEST_PREFIX.test(name);
    if (isPassed && !hopByHop.has(name)) headers.append(name, value);
  }
  // Usage is read from the response while it passes, so it must not be compressed.
  headers.set("accept-encoding", "identity");
  if (dialect === "anthropic" && !headers.has("anthropic-version")) headers.set("anthropic-version", ANTHROPIC_VERSION);
  if (key === "") return headers;
  if (dialect === "anthropic") headers.set("x-api-key", key);
  else if (dialect === "google") headers.set("x-goog-api-key", key);
  else headers.set("authorization", `Bearer ${key}`);
  return headers;
};

/** Returns the headers for the caller, without any that contain the provider's key. */
export const toCallerHeaders = (source: Headers, key: string): Headers => {
  const returned = new Headers();
  const hopByHop = listConnectionHeaders(source.get("connection"));
  for (const [name, value] of source) {
    const hasKey = key !== "" && (value.includes(key) || name.includes(key.toLowerCase()));
    const isServerHeader = DROPPED_RESPONSE_HEADERS.has(name) || ORIGIN_HEADERS.test(name) || name.startsWith("cf-");
    const isForProxies = hopByHop.has(name) || CACHE_HEADERS.test(name) || isInstruction(name);
    if (!hasKey && !isServerHeader && !isForProxies) returned.append(name, value);
  }
  const type = source.get("content-type")?.trim() ?? "";
  returned.set("content-type", ANSWER_TYPE.test(type) && !(key !== "" && type.includes(key)) ? type : PLAIN_TEXT);
  return returned;
};

/** Returns the provider's request ID; empty if none exists or it contains the key. */
export const findProviderRequestId = (headers: Headers, key: string): string => {
  const id = headers.get("request-id") ?? headers.get("x-request-id") ?? "";
  return key !== "" && id.includes(key) ? "" : id.slice(0, 200);
};

/**
 * Returns the token that a caller presents in the header of any dialect, or as Gemini's `key`; undefined if none exists. Only clients of
 * Gemini may send keys in URLs, because proxies log URLs.
 */
export const findToken = (request: Request, dialect: Dialect): string | undefined => {
  const { headers } = request;
  const bearer = /^bearer\s+(.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  const fromHeader = headers.get("x-api-key") ?? headers.get("x-goog-api-key") ?? bearer;
  const inUrl = dialect === "google" ? new URL(request.url).searchParams.get("key") : null;
  return (fromHeader ?? inUrl ?? undefined)?.trim() || undefined;
};

/** Parameters common to all Google APIs that do not affect how the gateway reads the response. */
const GOOGLE_PARAMETERS: Readonly<Record<string, RegExp>> = {
  alt: /^(?:sse|json)$/,
  $alt: /^json(?:;enum-encoding=int)?$/,
  prettyPrint: /^(?:true|false)$/,
  key: /./,
  access_token: /./,
};

/**
 * Rejects parameters that would change the form of a Google response or omit its usage, because its cost would be unknown. Throws
 * CallBodyError.
 */
export const refuseSelection = (dialect: Dialect, request: Request): void => {
  if (dialect !== "google") return;
  const parameter = [...new URL(request.url).searchParams].find(
    ([name, value]) => !GOOGLE_PARAMETERS[name]?.test(value),
  );
  if (parameter)
    throw new CallBodyError(`The gateway does not forward the query parameter \`${parameter[0].slice(0, 100)}\`.`);
  if (request.headers.has("x-goog-fieldmask")) {
    throw new CallBodyError("The gateway does not forward the header `X-Goog-FieldMask`.");
  }
};

/** Returns the URL of a call: the provider's address, the endpoint's path and the caller's query without credentials. */
export const toProviderUrl = (
  { base_url }: Pick<ConfiguredProvider, "base_url">,
  { defaultUrl, path, model, query }: { defaultUrl: string; path: string; model: string; query: URLSearchParams },
): URL => {
  const url = new URL(`${trimEnd(base_url || defaultUrl, "/")}${path.replace("{model}", encodeURIComponent(model))}`);
  for (const [name, value] of query)
    if (name !== "key" && name !== "access_token") url.searchParams.append(name, value);
  return url;
};
