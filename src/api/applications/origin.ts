// Decides which pages may send credentialed requests to an app: its own pages and those of other apps of the same workspace (rule AX-4).
// An owner's other workspaces may run programs of other people, who would get what the owner can do here.
// Programs without an Origin header pass, as do requests without Slipway's cookie.
import type { AppName } from "#base/links/app-label.ts";
import type { AppHosts } from "#domain/applications/names.ts";

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

type AppOrigin = {
  readonly hosts: AppHosts;
  readonly name: AppName;
  readonly accessUrl: URL;
  readonly onHost: boolean;
};

/** Returns false for a write or WebSocket that another site's page has sent with the cookie. */
export const isFromOwnPage = (request: Request, { hosts, name, accessUrl, onHost }: AppOrigin): boolean => {
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
  return onHost ? isOfWorkspace(hosts.parseOrigin(origin), name) : host === accessUrl.host;
};

/**
 * Returns whether this is the preflight of a page of another app of the same workspace on its own host. Browsers send preflights without
 * cookies, so the app answers them for everyone; access is checked again with the actual request.
 */
export const isOwnPreflight = ({ method, headers }: Request, { hosts, name, onHost }: AppOrigin): boolean => {
  const origin = headers.get("origin");
  if (method !== "OPTIONS" || !onHost || origin === null || !headers.has("access-control-request-method")) return false;
  return isOfWorkspace(hosts.parseOrigin(origin), name);
};

const isOfWorkspace = (one: AppName | undefined, { user, workspace }: AppName): boolean =>
  one?.user === user && one.workspace === workspace;
