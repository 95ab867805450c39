// Merge requests of GitLab, via the REST API, presented as pull requests (rules PR-2, PR-3). GitLab does not report changed lines,
// so the first pages of the diff are counted.
import { getObject, getText, getUrl, toCount, toObjects } from "./json-fields.ts";
import type { Pull, Pulls } from "./pull.ts";
import { PullError, type PullHttp } from "./pulls-http.ts";

const PAGE_SIZE = 100;
/** Files beyond these pages are neither counted nor shown. */
const MAX_PAGES = 3;

type Change = { readonly old_path: string; readonly new_path: string; readonly diff: string };

export const createGitlabPulls = (http: PullHttp, project: string): Pulls => {
  const projectPath = `/projects/${encodeURIComponent(project)}`;
  const listChanges = async (path: string): Promise<Change[]> => {
    const all: Change[] = [];
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const changes = parseChanges(await http.json(`${path}/diffs?per_page=${PAGE_SIZE}&page=${page}`));
      all.push(...changes);
      if (changes.length < PAGE_SIZE) break;
    }
    return all;
  };
  return {
    find(branch) {
      const query = new URLSearchParams({ source_branch: branch, order_by: "created_at", sort: "desc", per_page: "1" });
      return http.get(
        "find",
        `${projectPath}/merge_requests?${query}`,
        (json) => toCount(toObjects(json)[0]?.iid) || undefined,
      );
    },
    async read(number) {
      const path = `${projectPath}/merge_requests/${number}`;
      const { requested, ...pull } = await http.get("pull", path, parseMergeRequest);
      const approvers = await http.get("approvals", `${path}/approvals`, (json) =>
        toObjects(getObject(json).approved_by).map(({ user }) => getText(getObject(user).username)),
      );
      const rejecters = await http.get("reviewers", `${path}/reviewers`, (json) =>
        toObjects(json).flatMap(({ user, state }) =>
          state === "requested_changes" ? [getText(getObject(user).username)] : [],
        ),
      );
      const commits = await http.get("commits", `${path}/commits?per_page=${PAGE_SIZE}`, (json, headers) =>
        Math.max(toCount(headers.get("x-total") ?? ""), toObjects(json).length),
      );
      const lines = await http.get("lines", `${path}/diffs?per_page=${PAGE_SIZE}&page=1`, (json) =>
        countLines(parseChanges(json)),
      );
      const changes_requested = rejecters.length > 0;
      return {
        ...pull,
        ...lines,
        commits,
        reviewer_count: new Set([...requested, ...approvers, ...rejecters]).size,
        approved: !changes_requested && approvers.length > 0,
        changes_requested,
      };
    },
    diff: async (number) => formatDiff(await listChanges(`${projectPath}/merge_requests/${number}`)),
    async branchDiff(branch) {
      const from = await http.get("project", projectPath, (json) => getText(getObject(json).default_branch));
      if (from === "") throw new PullError("failed", "The git host reports no default branch.");
      const query = new URLSearchParams({ from, to: branch });
      const json = await http.json(`${projectPath}/repository/compare?${query}`);
      return formatDiff(parseChanges(getObject(json).diffs));
    },
  };
};

const parseMergeRequest = (json: unknown) => {
  const request = getObject(json);
  const author = getObject(request.author);
  const pr_number = toCount(request.iid);
  if (pr_number === 0) throw new PullError("failed", "The git host's response is not a merge request.");
  return {
    pr_number,
    pr_state: request.state === "merged" ? "merged" : request.state === "closed" ? "closed" : "open",
    pr_draft: request.draft === true || request.work_in_progress === true,
    pr_title: getText(request.title),
    url: getUrl(request.web_url),
    author_login: getText(author.username),
    author_avatar_url: getUrl(author.avatar_url),
    base_branch: getText(request.target_branch),
    head_branch: getText(request.source_branch),
    changed_files: toCount(request.changes_count),
    requested: toObjects(request.reviewers).map(({ username }) => getText(username)),
  } satisfies Partial<Pull> & { requested: string[] };
};

const parseChanges = (json: unknown): Change[] =>
  (Array.isArray(json) ? json : []).slice(0, PAGE_SIZE * MAX_PAGES).map((one) => {
    const { old_path, new_path, diff } = getObject(one);
    return { old_path: getText(old_path), new_path: getText(new_path), diff: typeof diff === "string" ? diff : "" };
  });

const countLines = (changes: readonly Change[]): { additions: number; deletions: number } => {
  let [additions, deletions] = [0, 0];
  for (const { diff } of changes) {
    additions += diff.match(/^\+/gm)?.length ?? 0;
    deletions += diff.match(/^-/gm)?.length ?? 0;
  }
  return { additions, deletions };
};

const formatDiff = (changes: readonly Change[]): string =>
  changes
    .map(({ old_path, new_path, diff }) => {
      const names = `diff --git a/${old_path} b/${new_path}\n`;
      const head = diff.startsWith("@@") ? `--- a/${old_path}\n+++ b/${new_path}\n` : "";
      return `${names}${head}${diff === "" || diff.endsWith("\n") ? diff : `${diff}\n`}`;
    })
    .join("");
