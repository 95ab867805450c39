// Pull requests of GitHub and GitHub Enterprise, via the REST API (rules PR-2, PR-3).
import { getObject, getText, getUrl, toCount, toObjects } from "./json-fields.ts";
import type { Pull, Pulls } from "./pull.ts";
import { PullError, type PullHttp } from "./pulls-http.ts";

const DIFF_MEDIA_TYPE = "application/vnd.github.diff";

export const createGithubPulls = (http: PullHttp, project: string): Pulls => {
  const repo = `/repos/${project}`;
  const [owner = ""] = project.split("/");
  return {
    find(branch) {
      const query = new URLSearchParams({
        head: `${owner}:${branch}`,
        state: "all",
        sort: "created",
        direction: "desc",
      });
      return http.get(
        "find",
        `${repo}/pulls?${query}&per_page=1`,
        (json) => toCount(toObjects(json)[0]?.number) || undefined,
      );
    },
    async read(number) {
      const pull = await http.get("pull", `${repo}/pulls/${number}`, parsePull);
      const verdict = await http.get("reviews", `${repo}/pulls/${number}/reviews?per_page=100`, (json) =>
        parseVerdict(json, pull.author_login),
      );
      const { requested, ...fields } = pull;
      const { reviewers, ...decision } = verdict;
      return { ...fields, ...decision, reviewer_count: new Set([...requested, ...reviewers]).size };
    },
    diff: (number) => http.text(`${repo}/pulls/${number}`, DIFF_MEDIA_TYPE),
    async branchDiff(branch) {
      const base = await http.get("project", repo, (json) => getText(getObject(json).default_branch));
      if (base === "") throw new PullError("failed", "The git host reports no default branch.");
      return http.text(`${repo}/compare/${encodeURIComponent(base)}...${encodeURIComponent(branch)}`, DIFF_MEDIA_TYPE);
    },
  };
};

const parsePull = (
  json: unknown,
): Omit<Pull, "reviewer_count" | "approved" | "changes_requested"> & { requested: string[] } => {
  const pull = getObject(json);
  const author = getObject(pull.user);
  const isMerged = pull.merged === true || typeof pull.merged_at === "string";
  const pr_number = toCount(pull.number);
  if (pr_number === 0) throw new PullError("failed", "The git host's response is not a pull request.");
  return {
    pr_number,
    pr_state: isMerged ? "merged" : pull.state === "closed" ? "closed" : "open",
    pr_draft: pull.draft === true,
    pr_title: getText(pull.title),
    url: getUrl(pull.html_url),
    author_login: getText(author.login),
    author_avatar_url: getUrl(author.avatar_url),
    base_branch: getText(getObject(pull.base).ref),
    head_branch: getText(getObject(pull.head).ref),
    additions: toCount(pull.additions),
    deletions: toCount(pull.deletions),
    changed_files: toCount(pull.changed_files),
    commits: toCount(pull.commits),
    requested: toObjects(pull.requested_reviewers).map(({ login }) => getText(login)),
  };
};

/** Returns the verdict of all reviewers. The latest one of each counts; a comment without a verdict does not change it. */
const parseVerdict = (json: unknown, author: string) => {
  const latest = new Map<string, string>();
  const reviewers = new Set<string>();
  for (const { user, state } of toObjects(json)) {
    const login = getText(getObject(user).login);
    if (login === "" || login === author) continue;
    reviewers.add(login);
    if (state === "APPROVED" || state === "CHANGES_REQUESTED" || state === "DISMISSED") latest.set(login, state);
  }
  const verdicts = [...latest.values()];
  const changes_requested = verdicts.includes("CHANGES_REQUESTED");
  const approved = !changes_requested && verdicts.includes("APPROVED");
  return { approved, changes_requested, reviewers: [...reviewers] };
};
