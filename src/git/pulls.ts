// Pull requests at git hosts, whatever the host calls them: which one a branch has, how it stands, and its diff (facts/chats 6, rules PR-1
// to PR-5). Which hosts there are follows from the external-auth providers; others are never asked.

import type { Provider } from "./provider.ts";
import type { Pulls } from "./pull.ts";
import { githubPulls } from "./pulls-github.ts";
import { gitlabPulls } from "./pulls-gitlab.ts";
import type { PullHttp } from "./pulls-http.ts";

type Kind = {
  /** What goes before the paths of questions. */
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
    pulls: githubPulls,
  },
  gitlab: {
    api: (base) => `${base}/api/v4`,
    headers: (token) => ({ accept: "application/json", authorization: `Bearer ${token}` }),
    pulls: gitlabPulls,
  },
};

/** How this provider's host is asked about pull requests; undefined for kinds of hosts we do not know. */
export const findPullHost = (provider: Pick<Provider, "type" | "base_url">) => {
  const kind = KINDS[provider.type];
  if (!kind || provider.base_url === "") return undefined;
  return { api: kind.api(provider.base_url), headers: kind.headers, pulls: kind.pulls };
};
