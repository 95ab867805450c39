// The git stream of a chat: a real repository in a real workspace, tools that change it, and followers.
import { afterAll, beforeAll, expect } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { updateBy } from "#db/engine/sql.ts";
import { workspaces } from "#db/schema/workspaces.ts";
import type { GitMessage, GitRepository } from "#schema/agents/git-message.ts";
import type { Generic } from "#schema/generic.ts";
import type { Client, ClientSocket } from "#src/client.ts";
import { startAgentProcess } from "#test/api/agents/reach.ts";
import { createChat } from "#test/support/chats.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { makeRepository } from "#test/support/repository.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { callTools, openChat, openToolWorld, type ToolWorld } from "#test/tools/world.ts";

let world: ToolWorld;
beforeAll(async () => {
  if (needs.git.found) world = await openToolWorld();
});
afterAll(() => world?.[Symbol.asyncDispose]());

const path = (id: string): string => `/api/v2/chats/${id}/stream/git`;
const getRejection = async (client: Client, id: string): Promise<[number, string]> => {
  const answer = await client.fetch("GET", path(id));
  const { message, detail } = (await answer.json()) as Generic;
  return [answer.status, answer.status === 403 ? (detail ?? "") : message];
};

/** Returns a client's state after all messages so far. */
const followUntil = async (
  socket: ClientSocket,
  seen: Map<string, GitRepository>,
  until: (seen: Map<string, GitRepository>) => boolean,
): Promise<void> => {
  while (!until(seen)) {
    const { type, repositories = [] } = await socket.json<GitMessage>();
    expect(type).toBe("changes");
    for (const one of repositories) one.removed ? seen.delete(one.repo_root) : seen.set(one.repo_root, one);
  }
};

testNeeding(
  [needs.git],
  "[GS-5] shows every follower what the chat's tools change, whenever it joins, until the repository no longer exists",
  async () => {
    const { id, call } = await openChat(world);
    const origin = join(world.home, "origin.git");
    makeRepository(join(world.home, "seed")).git("clone", "-q", "--bare", ".", origin);
    const diffIn = (seen: Map<string, GitRepository>) => [...seen.values()][0]?.unified_diff ?? "";
    using first = await world.owner.socket(path(id));
    const ownRepositories = new Map<string, GitRepository>();
    const env = "GIT_CONFIG_GLOBAL=/dev/null git -c user.name=a -c user.email=a@b";
    const cloned = await callTools(world, call, [
      "execute",
      { command: `git clone -q ${origin} work`, timeout: "60s" },
    ]);
    expect(cloned.results).toMatchObject([{ success: true }]);
    // It may be seen half created.
    await followUntil(first, ownRepositories, (seen) => {
      const [one] = seen.values();
      return one?.branch === "main" && one.remote_origin === origin && one.unified_diff === "";
    });
    const root = [...ownRepositories.keys()][0] ?? "";
    expect(ownRepositories.get(root)).toMatchObject({
      branch: "main",
      remote_origin: origin,
      unified_diff: "",
      removed: false,
    });
    const edits = [{ old_text: "two", new_text: "zwei" }];
    const edited = await callTools(world, cloned.next, ["edit_files", { files: [{ path: "work/a.txt", edits }] }]);
    await followUntil(first, ownRepositories, (seen) => diffIn(seen).includes("+zwei\n"));
    using second = await world.owner.socket(path(id).replace("v2", "experimental"));
    const other = new Map<string, GitRepository>();
    await followUntil(second, other, (seen) => diffIn(seen).includes("+zwei\n"));
    const command = `cd work && git checkout -q -b fix && ${env} commit -qam fixed`;
    const committed = await callTools(world, edited.next, ["execute", { command, timeout: "60s" }]);
    for (const [socket, seen] of [
      [first, ownRepositories],
      [second, other],
    ] as const) {
      await followUntil(socket, seen, () => seen.get(root)?.branch === "fix" && diffIn(seen) === "");
    }
    expect(other).toEqual(ownRepositories);
    // Changes by others are shown on request; an invalid message is answered and changes nothing.
    await Bun.write(join(root, "new.txt"), "by hand\n");
    second.send("{}");
    expect(await second.json<GitMessage>()).toEqual({ type: "error", message: "unknown message type" });
    second.send(JSON.stringify({ type: "refresh" }));
    await followUntil(second, other, (seen) => diffIn(seen).includes("+by hand\n"));
    const removed = await callTools(world, committed.next, ["execute", { command: "rm -rf work", timeout: "60s" }]);
    await followUntil(first, ownRepositories, (seen) => seen.size === 0);
    removed.next.finish();
  },
);

testNeeding(
  [needs.git],
  "[TO-21] hides known secrets in changes and names of branches, and keeps every line",
  async () => {
    const { id, call } = await openChat(world);
    const secret = "SuperSecretValue-77123";
    await world.owner.post("/api/v2/users/me/secrets", { name: "branch", value: `${secret}\n` });
    const root = join(world.home, "leaky");
    makeRepository(root).git("checkout", "-q", "-b", `use-${secret}`);
    using socket = await world.owner.socket(path(id));
    const edits = [{ old_text: "two", new_text: secret }];
    const { next } = await callTools(world, call, ["edit_files", { files: [{ path: "leaky/a.txt", edits }] }]);
    const seen = new Map<string, GitRepository>();
    await followUntil(socket, seen, () => seen.get(root)?.unified_diff.includes("-two") === true);
    expect(seen.get(root)?.branch).toBe("use-[hidden]");
    expect(seen.get(root)?.unified_diff).toContain(" one\n-two\n+[hidden]\n three\n");
    await world.owner.delete("/api/v2/users/me/secrets/branch");
    rmSync(root, { recursive: true });
    next.finish();
  },
);

testNeeding(
  [needs.git],
  "[GS-6] requires access to the chat and its workspace, is refused with a reason before the upgrade, and ends when the access or the agent ends",
  async () => {
    const { id, call } = await openChat(world);
    call.finish();
    const alone = await createChat(world, "go");
    (await world.models.next()).finish();
    expect(await getRejection(world.owner, alone.id)).toEqual([400, "The chat has no workspace."]);
    const friend = await seedUser(world.server, { organization_id: world.organization_id });
    const friendly = world.owner.withToken(friend.token);
    expect((await getRejection(friendly, id))[0]).toBe(404);
    await world.owner.patch(`/api/v2/chats/${id}/acl`, { user_roles: { [friend.user_id]: "read" } });
    expect(await getRejection(friendly, id)).toEqual([403, "You may not use the workspace of this chat."]);
    const { store } = getContext(world.server);
    const update = updateBy(workspaces, workspaces.id);
    const { workspace_id } = world.seeded;
    await store.commit([update(workspace_id, { user_acl: { [friend.user_id]: "use" } })]);
    using shared = await friendly.socket(path(id));
    await world.owner.patch(`/api/v2/chats/${id}/acl`, { user_roles: { [friend.user_id]: "" } });
    expect(await shared.closed).toEqual({ code: 1008, reason: "you no longer have access to the chat" });
    using mine = await world.owner.socket(path(id));
    await world.daemon[Symbol.asyncDispose]();
    expect(await mine.closed).toMatchObject({ code: 1011, reason: expect.stringContaining("agent") });
    expect(await getRejection(world.owner, id)).toEqual([400, expect.stringContaining("not connected")]);
    await store.commit([update(workspace_id, { status: "stopped", latest_build_id: world.seeded.resource_id })]);
    expect(await getRejection(world.owner, id)).toEqual([
      400,
      "The workspace of the chat has no agent: it is stopped.",
    ]);
    await store.commit([update(workspace_id, { dormant_at: 1 })]);
    expect((await getRejection(world.owner, id))[1]).toContain("dormant");
    await store.commit([update(workspace_id, { deleted: true })]);
    expect(await getRejection(world.owner, id)).toEqual([400, "The workspace of the chat was deleted."]);
  },
);

testNeeding(
  [needs.git],
  "[GS-7] shows the changes after the daemon was killed and the server was started again, with what a person changed in between",
  async () => {
    await using own = await openToolWorld();
    const at = makeRepository(join(own.home, "work"));
    const { id, call } = await openChat(own);
    const edits = [{ old_text: "two", new_text: "zwei" }];
    const edited = await callTools(own, call, ["edit_files", { files: [{ path: "work/a.txt", edits }] }]);
    expect(edited.results).toMatchObject([{ ok: true }]);
    edited.next.finish();
    own.daemon.process.kill("SIGKILL");
    await own.daemon.process.exited;
    await Bun.write(join(at.root, "new.txt"), "by hand\n");
    await own.restart();
    await using _daemon = await startAgentProcess(own.server, own.seeded, own.home);
    using socket = await own.owner.socket(path(id));
    const seen = new Map<string, GitRepository>();
    await followUntil(socket, seen, () => seen.size > 0);
    const diff = seen.get(at.root)?.unified_diff ?? "";
    expect([diff.includes("+zwei\n"), diff.includes("+by hand\n")]).toEqual([true, true]);
  },
);
