// Decides which pages may send credentialed requests to an app: its own pages and those of other apps of the same workspace (rules AX-4,
// AX-26). An owner's other workspaces may run other people's programs, which could otherwise act as the owner in this one. Programs without
// an Origin header pass, as do requests without Slipway's cookie.
import { type AppName, formatLabel } from "#base/links/app-label.ts";
import type { AppHosts } from "#domain/applications/names.ts";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

type AppOrigin = {
  readonly hosts: AppHosts;
  readonly name: AppName;
  readonly accessUrl: URL;
  readonly hasOwnHost: boolean;
};

/** Returns false for a write or WebSocket that another site's page has sent with the cookie. */
export const isFromOwnPage = ({ method, headers }: Request, own: AppOrigin): boolean => {
  if (SAFE_METHODS.has(method) && headers.get("upgrade") === null) return true;
  const origin = headers.get("origin");
  if (origin === null) {
    const site = headers.get("sec-fetch-site");
    return site === null || site === "same-origin" || site === "none";
  }
  return isOwnOrigin(origin, headers, own);
};

/**
 * Returns whether a page of another workspace's app, or of another site, loads this as a subresource: a script, an image or data. With the
 * viewer's session, the page could read it. Links and frames are not subresources.
 */
export const isForeignSubresource = ({ headers }: Request, own: AppOrigin): boolean => {
  const site = headers.get("sec-fetch-site");
  // An app without its own host is served under a path of the access URL, in a sandbox: its subresource requests have an opaque origin and
  // no cookies.
  const isElsewhere = site === "same-site" || (site === "cross-site" && own.hasOwnHost);
  if (!isElsewhere || headers.get("sec-fetch-mode")?.endsWith("navigate")) return false;
  return !isOwnOrigin(getSendingOrigin(headers), headers, own);
};

/** Returns whether a page of another app of the workspace loads this as a subresource. */
export const isSubresourceOfSibling = ({ headers }: Request, { hosts, name, hasOwnHost }: AppOrigin): boolean => {
  if (!hasOwnHost || (headers.get("sec-fetch-mode") ?? "no-cors") !== "no-cors") return false;
  const sender = hosts.parseOrigin(getSendingOrigin(headers));
  return sender !== undefined && isInWorkspace(sender, name) && formatLabel(sender) !== formatLabel(name);
};

/** Returns the origin of the page that sent a request. For scripts and images, browsers send only the Referer header. */
const getSendingOrigin = (headers: Headers): string => {
  const referer = headers.get("referer") ?? "";
  return headers.get("origin") ?? (URL.canParse(referer) ? new URL(referer).origin : "");
};

const isOwnOrigin = (origin: string, headers: Headers, { hosts, name, accessUrl, hasOwnHost }: AppOrigin): boolean => {
  if (!URL.canParse(origin)) return false;
  const { protocol, host } = new URL(origin);
  if (protocol !== accessUrl.protocol) return false;
  if (host === headers.get("host")?.toLowerCase()) return true;
  return hasOwnHost ? isInWorkspace(hosts.parseOrigin(origin), name) : host === accessUrl.host;
};

/**
 * Returns whether a page of another app in the workspace sends this CORS preflight to an app on its own host. Browsers send them without
 * cookies, so the app answers them for everyone; access is checked again with the actual request.
 */
export const isWorkspacePreflight = ({ method, headers }: Request, { hosts, name, hasOwnHost }: AppOrigin): boolean => {
  const origin = headers.get("origin");
  if (method !== "OPTIONS" || !hasOwnHost || origin === null || !headers.has("access-control-request-method"))
    return false;
  return isInWorkspace(hosts.parseOrigin(origin), name);
};

const isInWorkspace = (app: AppName | undefined, { user, workspace }: AppName): boolean =>
  app?.user === user && app.workspace === workspace;
