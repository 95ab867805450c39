// Pull requests at git hosts, against a real HTTP server that answers as GitHub and GitLab do.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { nextCheckDelay } from "#actors/chat/background/pull-request-schedule.ts";
import { systemClock } from "#base/clock.ts";
import { Outbound } from "#base/outbound.ts";
import { findPullHost } from "#src/git/pulls.ts";
import { type CachedResponses, PullError, PullHttp } from "#src/git/pulls-http.ts";
import { parseRemote } from "#src/git/remote.ts";
import { createGithubPull, FakeGitApi } from "#test/support/fake-git-api.ts";

let host: FakeGitApi;
beforeAll(() => {
  host = new FakeGitApi();
});
afterAll(() => host[Symbol.dispose]());
let restTimes: number[] = [];
beforeEach(() => {
  host.answers.clear();
  host.requests.length = 0;
  host.refuse = undefined;
  restTimes = [];
});

const NOW = Date.UTC(2030, 0, 1);
const clock = { ...systemClock, now: () => NOW };

const openHost = (
  type: "github" | "gitlab",
  { kept = {}, allowed = ["127.0.0.0/8"] }: { kept?: CachedResponses; allowed?: string[] } = {},
) => {
  const kind = findPullHost({ type, base_url: host.url });
  if (!kind) throw new Error("no such host");
  const http = new PullHttp({
    outbound: new Outbound({ clock: systemClock, allowed }),
    clock,
    api: kind.api,
    headers: kind.headers("secret"),
    kept,
    rest: (until) => restTimes.push(until),
  });
  return { http, pulls: kind.pulls(http, "team/repo") };
};
const getFailure = async (work: Promise<unknown>): Promise<PullError> => {
  const error = await work.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  if (!(error instanceof PullError)) throw new Error(`not refused: ${error}`);
  return error;
};

const REPOSITORY = "/api/v3/repos/team/repo";
const FIND = `${REPOSITORY}/pulls?head=team%3Afix&state=all&sort=created&direction=desc&per_page=1`;
const makeReview = (login: string, state: string) => ({ user: { login }, state });

test("[PR-1] a remote is parsed to a host and a project in every notation; other text is not", () => {
  for (const address of [
    "https://git.example/team/repo.git",
    "https://ann:token@GIT.example/team/repo/",
    "git@git.example:team/repo.git",
    "ssh://git@git.example:2222/team/repo.git",
  ]) {
    expect([address, parseRemote(address)]).toEqual([address, { host: "git.example", project: "team/repo" }]);
  }
  expect(parseRemote("https://git.example:8443/a/b/c")).toEqual({ host: "git.example:8443", project: "a/b/c" });
  for (const address of [
    "",
    "/srv/repo.git",
    "file:///a/b",
    "https://git.example/repo",
    "https://h/a/../b",
    "https://h/a/b?c=/d e/",
    "https://h/a/%2e%2e",
  ]) {
    expect([address, parseRemote(address)]).toEqual([
      address,
      address.includes("?") ? { host: "h", project: "a/b" } : undefined,
    ]);
  }
});

test("[PR-2] GitHub: finds the newest pull request of a branch, its state, and its reviewers' last verdicts", async () => {
  host.json(FIND, [{ number: 7 }]);
  host.json(`${REPOSITORY}/pulls/7`, createGithubPull(host.url));
  host.json(`${REPOSITORY}/pulls/7/reviews?per_page=100`, [
    makeReview("bob", "CHANGES_REQUESTED"),
    makeReview("bob", "COMMENTED"),
    makeReview("dan", "APPROVED"),
    makeReview("ann", "COMMENTED"),
  ]);
  const { http, pulls } = openHost("github");
  expect(await pulls.find("fix")).toBe(7);
  const pull = await pulls.read(7);
  expect(pull).toMatchObject({
    pr_number: 7,
    pr_state: "open",
    pr_title: "Fix the Frobnicator",
    additions: 3,
    commits: 1,
  });
  expect(pull).toMatchObject({ reviewer_count: 3, approved: false, changes_requested: true, author_login: "ann" });
  // A repeated request sends the response's ETag, and the answer comes from the cache.
  const repeated = openHost("github", { kept: http.kept });
  expect([await repeated.pulls.find("fix"), await repeated.pulls.read(7)]).toEqual([7, pull]);
  expect(host.requests.slice(3).every((line) => line.startsWith("304 "))).toBe(true);
  expect(repeated.http.kept).toEqual(http.kept);
  host.json(
    `${REPOSITORY}/pulls/7`,
    createGithubPull(host.url, { state: "closed", merged: true, html_url: "javascript:alert(1)" }),
  );
  host.json(`${REPOSITORY}/pulls/7/reviews?per_page=100`, [
    makeReview("bob", "CHANGES_REQUESTED"),
    makeReview("bob", "APPROVED"),
  ]);
  expect(await openHost("github", { kept: http.kept }).pulls.read(7)).toMatchObject({
    pr_state: "merged",
    url: "",
    approved: true,
  });
  host.json(FIND, []);
  expect(await pulls.find("fix")).toBeUndefined();
  host.answers.set(`application/vnd.github.diff ${REPOSITORY}/pulls/7`, { text: "diff --git a/x b/x\n" });
  expect(await pulls.diff(7)).toBe("diff --git a/x b/x\n");
  host.json(REPOSITORY, { default_branch: "main" });
  host.answers.set(`${REPOSITORY}/compare/main...fix`, { text: "diff of the branch" });
  expect(await pulls.branchDiff("fix")).toBe("diff of the branch");
  expect([...host.tokens]).toEqual(["Bearer secret"]);
});

test("[PR-2] GitLab: finds a merge request, its state and reviewers, counts its lines, and assembles its diff", async () => {
  const PROJECT = "/api/v4/projects/team%2Frepo";
  const MERGE_REQUEST = `${PROJECT}/merge_requests/3`;
  host.json(`${PROJECT}/merge_requests?source_branch=fix&order_by=created_at&sort=desc&per_page=1`, [{ iid: 3 }]);
  host.json(MERGE_REQUEST, {
    iid: 3,
    state: "opened",
    draft: true,
    title: "Fix it",
    web_url: `${host.url}/team/repo/-/merge_requests/3`,
    author: { username: "ann", avatar_url: null },
    source_branch: "fix",
    target_branch: "main",
    changes_count: "2",
    reviewers: [{ username: "bob" }],
  });
  host.json(`${MERGE_REQUEST}/approvals`, { approved_by: [{ user: { username: "dan" } }] });
  host.json(`${MERGE_REQUEST}/reviewers`, [{ user: { username: "bob" }, state: "reviewed" }]);
  host.json(`${MERGE_REQUEST}/commits?per_page=100`, [{}], { "x-total": "4" });
  const changes = [
    { old_path: "a", new_path: "a", diff: "@@ -1 +1,2 @@\n-one\n+two\n+three\n" },
    { old_path: "b", new_path: "c", diff: "" },
  ];
  host.json(`${MERGE_REQUEST}/diffs?per_page=100&page=1`, changes);
  const { pulls } = openHost("gitlab");
  expect(await pulls.find("fix")).toBe(3);
  expect(await pulls.read(3)).toEqual({
    pr_number: 3,
    pr_state: "open",
    pr_draft: true,
    pr_title: "Fix it",
    commits: 4,
    changed_files: 2,
    url: `${host.url}/team/repo/-/merge_requests/3`,
    author_login: "ann",
    author_avatar_url: "",
    base_branch: "main",
    head_branch: "fix",
    additions: 2,
    deletions: 1,
    reviewer_count: 2,
    approved: true,
    changes_requested: false,
  });
  expect(await pulls.diff(3)).toBe(
    "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-one\n+two\n+three\ndiff --git a/b b/c\n",
  );
});

test("[PR-3] a rate-limited host is not called before the time that it names, and a private address never", async () => {
  const { pulls } = openHost("github");
  const findAfterResponse = (status: number, headers: Record<string, string>, text = "") => {
    host.refuse = () => new Response(text, { status, headers });
    return getFailure(pulls.find("fix"));
  };
  expect(await findAfterResponse(429, { "retry-after": "90" })).toMatchObject({ kind: "limited", until: NOW + 90_000 });
  const reset = String(NOW / 1_000 + 300);
  expect(await findAfterResponse(403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset })).toMatchObject({
    until: NOW + 300_000,
  });
  expect(await findAfterResponse(403, {}, "You have exceeded a secondary rate limit")).toMatchObject({
    kind: "limited",
    until: NOW + 60_000,
  });
  expect(await findAfterResponse(429, { "retry-after": "99999999" })).toMatchObject({ until: NOW + 86_400_000 });
  expect(restTimes).toEqual([90_000, 300_000, 60_000, 86_400_000].map((ms) => NOW + ms));
  expect(await findAfterResponse(403, {})).toMatchObject({ kind: "denied" });
  expect(await findAfterResponse(404, {})).toMatchObject({ kind: "missing" });
  expect(await findAfterResponse(302, { location: "http://169.254.169.254/" })).toMatchObject({ kind: "failed" });
  expect(await findAfterResponse(200, {}, "<html>")).toMatchObject({ kind: "failed" });
  host.refuse = () => Response.json([], { headers: { "ratelimit-remaining": "0", "ratelimit-reset": reset } });
  expect(await pulls.find("fix")).toBeUndefined();
  expect(restTimes.at(-1)).toBe(NOW + 300_000);
  const requested = host.requests.length;
  expect(await getFailure(openHost("github", { allowed: [] }).pulls.find("fix"))).toMatchObject({
    kind: "failed",
    message: expect.stringContaining("not a public address"),
  });
  expect(host.requests).toHaveLength(requested);
});

test("[PR-4] a pull request is polled often during work, rarely later and after failures, and never after its merge", () => {
  const minute = 60_000;
  const nextDelay = (pr_state: string | null, idle: number, failures = 0) =>
    nextCheckDelay({ pr_state, pushed_at: NOW - idle, failures }, NOW);
  expect([nextDelay("open", 0), nextDelay("open", 120 * minute), nextDelay("open", 2 * 1_440 * minute)]).toEqual([
    2 * minute,
    10 * minute,
    120 * minute,
  ]);
  expect([nextDelay(null, 0), nextDelay(null, 120 * minute), nextDelay(null, 1_441 * minute)]).toEqual([
    2 * minute,
    30 * minute,
    null,
  ]);
  expect([nextDelay("merged", 0), nextDelay("closed", 0)]).toEqual([null, null]);
  expect([1, 2, 3, 20].map((failures) => nextDelay("open", 0, failures))).toEqual([
    minute,
    2 * minute,
    4 * minute,
    360 * minute,
  ]);
});
