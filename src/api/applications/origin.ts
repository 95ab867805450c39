// Which pages may send something to an app in the name of anyone who is signed in: its own, and those of other apps of the same owner
// (rule AX-4). Programs send no Origin and pass; so does what carries no cookie of ours.
import type { AppName } from "#base/links/app-label.ts";
import type { AppHosts } from "#domain/applications/names.ts";

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

type Place = { readonly hosts: AppHosts; readonly name: AppName; readonly accessUrl: URL; readonly onHost: boolean };

/** False for a write or a WebSocket that another site's page has sent with the cookie. */
export const isFromOwnPage = (request: Request, { hosts, name, accessUrl, onHost }: Place): boolean => {
  const { method, headers } = request;
  if (SAFE.has(method) && headers.get("upgrade") === null) return true;
  const origin = headers.get("origin");
  if (origin === null) {
    const site = headers.get("sec-fetch-site");
    return site === null || site === "same-origin" || site === "none";
  }
  if (!URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  if (protocol !== accessUrl.protocol) return false;
  if (host === headers.get("host")?.toLowerCase()) return true;
  return onHost ? hosts.nameOfOrigin(origin)?.user === name.user : host === accessUrl.host;
};

/**
 * True for the preflight of a page of another app of the same owner, at a host of its own. Browsers send none with a cookie, so the app
 * answers it for everyone: what it allows is decided again when the request itself comes.
 */
export const isOwnPreflight = ({ method, headers }: Request, { hosts, name, onHost }: Place): boolean => {
  const origin = headers.get("origin");
  if (method !== "OPTIONS" || !onHost || origin === null || !headers.has("access-control-request-method")) return false;
  return hosts.nameOfOrigin(origin)?.user === name.user;
};
