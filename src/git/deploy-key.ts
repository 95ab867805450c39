// Deploy keys: the repository of a key, its SSH URL, and the page where its public key is added. Pure.

import type { ProviderType } from "#base/config/external-auth-settings.ts";
import { parseRepositoryAddress } from "#base/links/repository-address.ts";
import { trimEnd, trimEnds } from "#base/text/trim.ts";

export type DeployKeyLocation = {
  /** The web URL of the repository, as in a plan. */
  readonly url: string;
  readonly ssh_url: string;
};

const SCP_ADDRESS = /^(?:([\w.-]+)@)?(\w[\w.-]*):(?!\/\/)(\S+)$/;
/** Accepts only user and host names that ssh cannot mistake for options. */
const SSH_URL = /^ssh:\/\/\w[\w.-]*@\w[\w.-]*(?::\d{1,5})?\/[\w.~/-]+$/;

/**
 * Returns the web and SSH URLs for a pasted link; undefined if it is not a repository. An SSH link is used as the SSH URL; for other
 * links, the default port is assumed.
 */
export const findDeployKeyLocation = (link: string): DeployKeyLocation | undefined => {
  const text = link.trim();
  const address = parseRepositoryAddress(text);
  if (!address) return undefined;
  const ssh_url = toSshUrl(text, address.url);
  return SSH_URL.test(ssh_url) ? { url: address.url, ssh_url } : undefined;
};

const toSshUrl = (text: string, url: string): string => {
  const scp = SCP_ADDRESS.exec(text);
  if (scp) {
    const [, user = "git", host = "", path = ""] = scp;
    return `ssh://${user}@${host.toLowerCase()}/${path.replace(/^\/+/, "")}`;
  }
  const parsedUrl = new URL(text);
  if (parsedUrl.protocol === "ssh:") {
    return `ssh://${parsedUrl.username || "git"}@${parsedUrl.host.toLowerCase()}/${parsedUrl.pathname.replace(/^\/+/, "")}`;
  }
  const { hostname, pathname } = new URL(url);
  const path = pathname.slice(1).replace(/\.git$/, "");
  // Bitbucket Server uses different paths and ports for SSH and the web.
  return path.startsWith("scm/")
    ? `ssh://git@${hostname}:7999/${path.slice("scm/".length)}.git`
    : `ssh://git@${hostname}/${path}.git`;
};

/** Returns the host and path of a repository, so that all addresses of one repository compare equal. The SSH port is ignored. */
export const toRepositoryName = (address: string): string => {
  const { protocol, host, hostname, pathname } = new URL(address);
  const path = trimEnds(pathname, "/").replace(/\.git$/, "");
  return `${(protocol === "ssh:" ? hostname : host).toLowerCase()}/${path}`;
};

/** Returns the host's page for adding deploy keys; undefined if the kind of host is unknown. */
export const toDeploySettingsUrl = (url: string, type: ProviderType | undefined): string | undefined => {
  const { origin, hostname, pathname } = new URL(url);
  const path = trimEnd(pathname, "/").replace(/\.git$/, "");
  const page = SETTINGS_PAGES[type && type in SETTINGS_PAGES ? type : (guessHostKind(hostname) ?? "")];
  return page && `${origin}${page(path)}`;
};

const SETTINGS_PAGES: Readonly<Record<string, (path: string) => string>> = {
  github: (path) => `${path}/settings/keys/new`,
  gitlab: (path) => `${path}/-/settings/repository#js-deploy-keys-settings`,
  gitea: (path) => `${path}/settings/keys`,
  "bitbucket-cloud": (path) => `${path}/admin/access-keys/`,
};

/** Guesses the kind of host from its name. */
const guessHostKind = (hostname: string): string | undefined => {
  if (hostname === "bitbucket.org") return "bitbucket-cloud";
  if (/(?:^|\.)(?:codeberg\.org|gitea|forgejo)(?:\.|$)/.test(hostname)) return "gitea";
  return ["github", "gitlab"].find((name) => hostname.split(".").includes(name));
};
