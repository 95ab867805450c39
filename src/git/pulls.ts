// Pull requests at git hosts, whatever the host calls them: which one a branch has, how it stands, and its diff (facts/chats 6, rules PR-1
// to PR-5). Which hosts there are follows from the external-auth providers; others are never asked.

import type { Provider } from "./provider.ts";
import { githubPulls } from "./pulls-github.ts";
import { gitlabPulls } from "./pulls-gitlab.ts";
import type { PullHttp } from "./pulls-http.ts";

export type Pull = {
  readonly pr_number: number;
  readonly pr_state: "open" | "closed" | "merged";
  readonly pr_draft: boolean;
  readonly pr_title: string;
  readonly url: string;
  readonly author_login: string;
  readonly author_avatar_url: string;
  readonly base_branch: string;
  readonly head_branch: string;
  readonly additions: number;
  readonly deletions: number;
  readonly changed_files: number;
  readonly commits: number;
  readonly reviewer_count: number;
  readonly approved: boolean;
  readonly changes_requested: boolean;
};

/** One project at a host. Everything throws PullError. */
export interface Pulls {
  /** The newest pull request from this branch; undefined when there is none. */
  find(branch: string): Promise<number | undefined>;
  read(number: number): Promise<Pull>;
  /** The unified diff of a pull request. */
  diff(number: number): Promise<string>;
  /** The unified diff of a branch against the project's own. */
  branchDiff(branch: string): Promise<string>;
}

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
      ...{ accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" },
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
export const pullHostOf = (provider: Pick<Provider, "type" | "base_url">) => {
  const kind = KINDS[provider.type];
  if (!kind || provider.base_url === "") return undefined;
  return { api: kind.api(provider.base_url), headers: kind.headers, pulls: kind.pulls };
};
