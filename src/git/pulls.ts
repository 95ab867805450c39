// Pull requests at git hosts: finds the pull request of a branch, its status, and its diff (facts/chats 6, rules PR-1 to PR-5). The hosts are those
// of the external-auth providers; no others are contacted.

import type { Provider } from "./provider.ts";
import type { Pulls } from "./pull.ts";
import { createGithubPulls } from "./pulls-github.ts";
import { createGitlabPulls } from "./pulls-gitlab.ts";
import type { PullHttp } from "./pulls-http.ts";

type Kind = {
  /** Returns the base of API paths. */
  readonly api: (base: string) => string;
  readonly headers: (token: string) => Record<string, string>;
  readonly pulls: (http: PullHttp, project: string) => Pulls;
};

const KINDS: Partial<Record<Provider["type"], Kind>> = {
  github: {
    api: (base) => (base === "https://github.com" ? "https://api.github.com" : `${base}/api/v3`),
    headers: (token) => ({
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
      authorization: `Bearer ${token}`,
    }),
    pulls: createGithubPulls,
  },
  gitlab: {
    api: (base) => `${base}/api/v4`,
    headers: (token) => ({ accept: "application/json", authorization: `Bearer ${token}` }),
    pulls: createGitlabPulls,
  },
};

/** Returns the pull request API for this provider's host; undefined for unsupported kinds of hosts. */
export const findPullHost = (provider: Pick<Provider, "type" | "base_url">) => {
  const kind = KINDS[provider.type];
  if (!kind || provider.base_url === "") return undefined;
  return { api: kind.api(provider.base_url), headers: kind.headers, pulls: kind.pulls };
};
