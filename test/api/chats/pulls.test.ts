// A chat's pull request from push to merge: a real repository in a real workspace, a server with GitHub's API, and all views of the pull
// request.
import { expect } from "bun:test";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatDiff } from "#schema/chats/chat-diff.ts";
import type { WatchEvent } from "#schema/chats/chat-event.ts";
import type { Generic } from "#schema/generic.ts";
import { FakeProvider } from "#test/api/external-auth/provider.ts";
import { LOCAL, link } from "#test/api/external-auth/world.ts";
import { createChat } from "#test/support/chats.ts";
import { createGithubPull, FakeGitApi } from "#test/support/fake-git-api.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { makeRepository } from "#test/support/repository.ts";
import { getContext } from "#test/support/seed.ts";
import { callTools, openChat, openToolWorld } from "#test/tools/world.ts";

const REPOSITORY_PATH = "/api/v3/repos/team/repo";
const FIND_PULL_PATH = `${REPOSITORY_PATH}/pulls?head=team%3Afix&state=all&sort=created&direction=desc&per_page=1`;

testNeeding(
  [needs.git],
  "[PR-5] finds a pushed branch's pull request, shows it in the chat, lists and searches, and follows it until the merge",
  async () => {
    using provider = new FakeProvider();
    using host = new FakeGitApi();
    const setting = provider.setting("hub", {
      type: "github",
      base_url: host.url,
      regex: "^http://127\\.0\\.0\\.1:[0-9]+",
    });
    await using world = await openToolWorld({ env: { ...LOCAL, SLIPWAY_EXTERNAL_AUTH: JSON.stringify([setting]) } });
    const { diffs } = getContext(world.server);
    await link(world.owner, provider, "hub");
    const { id, call } = await openChat(world);
    const origin = join(world.home, "origin.git");
    makeRepository(join(world.home, "seed")).git("clone", "-q", "--bare", ".", origin);
    host.json(FIND_PULL_PATH, [{ number: 7 }]);
    host.json(`${REPOSITORY_PATH}/pulls/7`, createGithubPull(host.url));
    host.json(`${REPOSITORY_PATH}/pulls/7/reviews?per_page=100`, []);
    host.answers.set(`application/vnd.github.diff ${REPOSITORY_PATH}/pulls/7`, {
      text: "diff --git a/a.txt b/a.txt\n",
    });
    expect((await world.owner.fetch("GET", `/api/v2/chats/${id}/diff`)).status).toBe(404);

    using watch = await world.owner.socket("/api/v2/chats/watch");
    const nextDiffChange = async (): Promise<Chat> => {
      for (;;) {
        const { kind, chat } = await watch.json<WatchEvent>();
        if (kind === "diff_status_change") return chat as Chat;
      }
    };
    const command = [
      `git clone -q ${origin} work`,
      "cd work",
      "git checkout -q -b fix",
      "git push -q origin fix",
      `git remote set-url origin ${host.url}/team/repo.git`,
    ].join(" && ");
    const { results, next } = await callTools(world, call, ["execute", { command, timeout: "60s" }]);
    expect(results).toMatchObject([{ success: true }]);
    next.finish();
    const expectedStatus = {
      chat_id: id,
      pr_number: 7,
      pull_request_state: "open",
      pull_request_title: "Fix the Frobnicator",
      url: `${host.url}/team/repo/pull/7`,
      additions: 3,
      deletions: 1,
      changed_files: 2,
      commits: 1,
      reviewer_count: 1,
      approved: false,
      changes_requested: false,
      pull_request_draft: false,
      base_branch: "main",
      head_branch: "fix",
    };
    expect((await nextDiffChange()).diff_status).toMatchObject(expectedStatus);
    const { diff_status } = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
    const time = expect.stringMatching(/^\d{4}-.*Z$/);
    const { user } = createGithubPull(host.url);
    expect(diff_status).toEqual({
      ...expectedStatus,
      author_login: user.login,
      author_avatar_url: user.avatar_url,
      refreshed_at: time,
      stale_at: time,
    } as never);
    expect([...host.tokens].every((token) => token.startsWith("Bearer "))).toBe(true);
    expect(await world.owner.get<ChatDiff>(`/api/v2/chats/${id}/diff`)).toEqual({
      chat_id: id,
      provider: "github",
      remote_origin: `${host.url}/team/repo.git`,
      branch: "fix",
      pull_request_url: expectedStatus.url,
      diff: "diff --git a/a.txt b/a.txt\n",
    });

    const otherChat = await createChat(world, "another", {});
    (await world.models.next()).finish();
    const searchChats = async (q: string): Promise<string[]> =>
      (await world.owner.get<Chat[]>(`/api/v2/chats?${new URLSearchParams({ q })}`)).map((chat) => chat.id);
    for (const q of [
      "pr:7",
      "pr_status:open",
      "pr_status:draft,open",
      "repo:TEAM/repo",
      "pr_title:frobnic",
      `diff_url:"${expectedStatus.url}"`,
      "search:frobnicator",
      "search:7",
      'search:"fix the"',
    ]) {
      expect([q, await searchChats(q)]).toEqual([q, [id]]);
    }
    for (const q of ["pr:8", "pr_status:merged", "repo:other", "search:8", "pr_title:x%"])
      expect([q, await searchChats(q)]).toEqual([q, []]);
    expect((await searchChats("archived:false")).sort()).toEqual([id, otherChat.id].sort());

    // Polling an unchanged pull request gets 304 and publishes no event.
    host.requests.length = 0;
    await diffs.onTimer(id);
    await diffs.whenIdle();
    expect(host.requests.map((line) => line.slice(0, 3))).toEqual(["304", "304", "304"]);
    host.json(
      `${REPOSITORY_PATH}/pulls/7`,
      createGithubPull(host.url, { state: "closed", merged: true, title: "Fix the Widget" }),
    );
    await diffs.onTimer(id);
    expect((await nextDiffChange()).diff_status).toMatchObject({
      pull_request_state: "merged",
      pull_request_title: "Fix the Widget",
    });
    expect(await searchChats("search:frobnicator")).toEqual([]);
    expect(await searchChats("search:widget")).toEqual([id]);
    expect(await searchChats("pr_status:merged")).toEqual([id]);

    // A rate-limited host is not called, neither by polling nor for a request.
    host.refuse = () => new Response("", { status: 429, headers: { "retry-after": "3600" } });
    await diffs.onTimer(id);
    await diffs.whenIdle();
    host.requests.length = 0;
    await diffs.onTimer(id);
    await diffs.whenIdle();
    const refused = await world.owner.fetch("GET", `/api/v2/chats/${id}/diff`);
    expect([refused.status, ((await refused.json()) as Generic).message]).toEqual([
      503,
      expect.stringContaining("rate limiting requests"),
    ]);
    expect(host.requests).toEqual([]);
    expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).diff_status).toMatchObject({
      pull_request_state: "merged",
    });
  },
);
