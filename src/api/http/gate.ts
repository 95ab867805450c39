// Rejects requests before Elysia sees them: unknown Host headers (a short host shifts where Elysia looks for the path, and a foreign host
// is DNS rebinding), and cookie-authenticated writes or WebSockets from another site's page (rules HT-1, HT-2).
import { AppError } from "#base/errors.ts";
import { parseHostName } from "#base/network/host-name.ts";
import type { Credential } from "./identify.ts";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Hostnames this server answers to, in lower case, without port; `[::1]` keeps its brackets. */
export type AllowedHosts = ReadonlySet<string>;

/** Throws 400 for a missing or malformed Host and 421 for one that is not in the allowlist. */
export const checkHost = (request: Request, allowed: AllowedHosts): void => {
  const host = request.headers.get("host") ?? "";
  const name = parseHostName(host);
  if (name === undefined) throw new AppError("invalid", "The Host header is missing or malformed.");
  if (allowed.has(name)) return;
  throw new AppError("misdirected", "This server does not answer to that host name.", {
    detail: "Add it to the setting allowed_hosts if it is yours.",
  });
};

/**
 * Throws 403 when a browser sent the request from another site's page. Applies to every WebSocket with an Origin, and to writes
 * authenticated by cookie. Programs without an Origin pass, as does a terminal ticket, which a browser never sends automatically.
 */
export const checkOrigin = (
  request: Request,
  credential: Credential | undefined,
  allowed: AllowedHosts,
  accessUrl: URL,
): void => {
  const origin = request.headers.get("origin");
  const isSocket = request.headers.get("upgrade")?.toLowerCase() === "websocket";
  const isCookieWrite = credential?.source === "cookie" && !SAFE_METHODS.has(request.method);
  if ((!isSocket && !isCookieWrite) || credential?.source === "ticket") return;
  if (origin === null) {
    // Browsers always send Origin on a WebSocket; on a same-origin write they send it or Sec-Fetch-Site.
    const site = request.headers.get("sec-fetch-site");
    if (isSocket || site === null || site === "same-origin" || site === "none") return;
  } else if (isOwnOrigin(origin, request, allowed, accessUrl)) return;
  throw new AppError("forbidden", "Forbidden.", { detail: "The request came from a page of another site." });
};

const isOwnOrigin = (origin: string, request: Request, allowed: AllowedHosts, accessUrl: URL): boolean => {
  if (!URL.canParse(origin)) return false;
  const { protocol, hostname, host } = new URL(origin);
  if (protocol !== "http:" && protocol !== "https:") return false;
  if (host === accessUrl.host) return protocol === accessUrl.protocol;
  if (host === request.headers.get("host")?.toLowerCase()) return true;
  // Another allowed name at the default port, behind a proxy that rewrites Host. Loopback names are excluded, because another program on
  // this machine may use that port.
  return host === hostname && allowed.has(hostname) && !LOOPBACK.has(hostname);
};

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);
