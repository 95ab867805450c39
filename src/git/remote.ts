import { trimEnds } from "#base/text/trim.ts";
// Parses the addresses of git remotes into host and project (rule PR-1). Pure; rejects addresses that no host would use.

export type Remote = { readonly host: string; readonly project: string };

const SCP = /^(?:[\w.-]+@)?([\w.-]+):(?!\/\/)(.+)$/;
const NAME = /^[\w.][\w.-]*$/;

/** Parses `https://host/team/repo.git`, `ssh://git@host:22/team/repo` or `git@host:team/repo.git`; returns undefined for anything else. */
export const parseRemote = (address: string): Remote | undefined => {
  if (address.length > 2_048) return undefined;
  const scp = SCP.exec(address);
  if (scp) return toRemote(scp[1] ?? "", scp[2] ?? "");
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  if (!/^(?:https?|ssh|git):$/.test(url.protocol)) return undefined;
  // The port of a web address is part of the host. An SSH port is left out, because it is unrelated to the web address.
  return toRemote(url.protocol.startsWith("http") ? url.host : url.hostname, url.pathname);
};

const toRemote = (host: string, path: string): Remote | undefined => {
  const parts = trimEnds(path, "/")
    .replace(/\.git$/, "")
    .split("/");
  const isProject = parts.length >= 2 && parts.length <= 20 && parts.every((part) => NAME.test(part) && part !== "..");
  return isProject && host !== "" ? { host: host.toLowerCase(), project: parts.join("/") } : undefined;
};
