// Decides which pages may send credentialed requests to an app: its own pages and those of other apps of the same workspace (rule AX-4).
// An owner's other workspaces may run other people's programs, which could otherwise act as the owner in this one.
// Programs without an Origin header pass, as do requests without Slipway's cookie.
import type { AppName } from "#base/links/app-label.ts";
import type { AppHosts } from "#domain/applications/names.ts";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

type AppOrigin = {
  readonly hosts: AppHosts;
  readonly name: AppName;
  readonly accessUrl: URL;
  readonly hasOwnHost: boolean;
};

/** Returns false for a write or WebSocket that another site's page has sent with the cookie. */
export const isFromOwnPage = (request: Request, { hosts, name, accessUrl, hasOwnHost }: AppOrigin): boolean => {
  const { method, headers } = request;
  if (SAFE_METHODS.has(method) && headers.get("upgrade") === null) return true;
  const origin = headers.get("origin");
  if (origin === null) {
    const site = headers.get("sec-fetch-site");
    return site === null || site === "same-origin" || site === "none";
  }
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

const isInWorkspace = (one: AppName | undefined, { user, workspace }: AppName): boolean =>
  one?.user === user && one.workspace === workspace;
