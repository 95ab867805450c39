// Deploy keys: which repository one is for, where git reaches it over ssh, and where its public half is pasted. Pure.

import type { ProviderType } from "#base/config/external-auth-settings.ts";
import { parseRepositoryAddress } from "#base/links/repository-address.ts";

export type DeployPlace = {
  /** The repository on the web, as a plan names it. */
  readonly url: string;
  readonly ssh_url: string;
};

const SCP = /^(?:([\w.-]+)@)?(\w[\w.-]*):(?!\/\/)(\S+)$/;
/** What programs of ssh take for a user and a host, and never for an option. */
const SSH_URL = /^ssh:\/\/\w[\w.-]*@\w[\w.-]*(?::\d{1,5})?\/[\w.~/-]+$/;

/** The places of a pasted link; undefined when it is none. A link that is one of ssh says where ssh is, any other is taken for a host with the usual port. */
export const findDeployPlace = (link: string): DeployPlace | undefined => {
  const text = link.trim();
  const address = parseRepositoryAddress(text);
  if (!address) return undefined;
  const ssh_url = toSshUrl(text, address.url);
  return SSH_URL.test(ssh_url) ? { url: address.url, ssh_url } : undefined;
};

const toSshUrl = (text: string, url: string): string => {
  const scp = SCP.exec(text);
  if (scp) {
    const [, user = "git", host = "", path = ""] = scp;
    return `ssh://${user}@${host.toLowerCase()}/${path.replace(/^\/+/, "")}`;
  }
  const given = new URL(text);
  if (given.protocol === "ssh:") {
    return `ssh://${given.username || "git"}@${given.host.toLowerCase()}/${given.pathname.replace(/^\/+/, "")}`;
  }
  const { hostname, pathname } = new URL(url);
  const path = pathname.slice(1).replace(/\.git$/, "");
  // Bitbucket Server: other paths and another port than on the web.
  return path.startsWith("scm/")
    ? `ssh://git@${hostname}:7999/${path.slice("scm/".length)}.git`
    : `ssh://git@${hostname}/${path}.git`;
};

/** The host and path of a repository, by which addresses of the same one are the same text. The port of ssh says nothing of the repository. */
export const toRepositoryName = (address: string): string => {
  const { protocol, host, hostname, pathname } = new URL(address);
  const path = pathname.replace(/^\/+|\/+$/g, "").replace(/\.git$/, "");
  return `${(protocol === "ssh:" ? hostname : host).toLowerCase()}/${path}`;
};

/** The page of a host where deploy keys of a repository are added; undefined where the kind of host is not known. */
export const deploySettingsUrl = (url: string, type: ProviderType | undefined): string | undefined => {
  const { origin, hostname, pathname } = new URL(url);
  const path = pathname.replace(/\/+$/, "").replace(/\.git$/, "");
  const page = PAGES[type && type in PAGES ? type : (kindOf(hostname) ?? "")];
  return page && `${origin}${page(path)}`;
};

const PAGES: Readonly<Record<string, (path: string) => string>> = {
  github: (path) => `${path}/settings/keys/new`,
  gitlab: (path) => `${path}/-/settings/repository#js-deploy-keys-settings`,
  gitea: (path) => `${path}/settings/keys`,
  "bitbucket-cloud": (path) => `${path}/admin/access-keys/`,
};

/** By the names that hosts of a kind usually have. */
const kindOf = (hostname: string): string | undefined => {
  if (hostname === "bitbucket.org") return "bitbucket-cloud";
  if (/(?:^|\.)(?:codeberg\.org|gitea|forgejo)(?:\.|$)/.test(hostname)) return "gitea";
  return ["github", "gitlab"].find((name) => hostname.split(".").includes(name));
};
