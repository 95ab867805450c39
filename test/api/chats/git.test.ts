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

const toPath = (id: string): string => `/api/v2/chats/${id}/stream/git`;
const getRejection = async (client: Client, id: string): Promise<[number, string]> => {
  const response = await client.fetch("GET", toPath(id));
  const { message, detail } = (await response.json()) as Generic;
  return [response.status, response.status === 403 ? (detail ?? "") : message];
};

type Repositories = Map<string, GitRepository>;
const getDiff = (repositories: Repositories) => [...repositories.values()][0]?.unified_diff ?? "";

/** Applies a client's messages to its repositories until they match. */
const followUntil = async (
  socket: ClientSocket,
  known: Repositories,
  matches: (known: Repositories) => boolean,
): Promise<void> => {
  while (!matches(known)) {
    const { type, repositories = [] } = await socket.json<GitMessage>();
    expect(type).toBe("changes");
    for (const repository of repositories) {
      if (repository.removed) known.delete(repository.repo_root);
      else known.set(repository.repo_root, repository);
    }
  }
};

testNeeding(
  [needs.git],
  "[GS-5] shows every follower the changes of the chat's tools until the repository is removed",
  async () => {
    const { id, call } = await openChat(world);
    const origin = join(world.home, "origin.git");
    makeRepository(join(world.home, "seed")).git("clone", "-q", "--bare", ".", origin);
    using firstSocket = await world.owner.socket(toPath(id));
    const firstRepositories: Repositories = new Map();
    const env = "GIT_CONFIG_GLOBAL=/dev/null git -c user.name=a -c user.email=a@b";
    const cloned = await callTools(world, call, [
      "execute",
      { command: `git clone -q ${origin} work`, timeout: "60s" },
    ]);
    expect(cloned.results).toMatchObject([{ success: true }]);
    // Earlier messages may show the repository while it is being created.
    await followUntil(firstSocket, firstRepositories, (known) => {
      const [repository] = known.values();
      return repository?.branch === "main" && repository.remote_origin === origin && repository.unified_diff === "";
    });
    const root = [...firstRepositories.keys()][0] ?? "";
    expect(firstRepositories.get(root)).toMatchObject({
      branch: "main",
      remote_origin: origin,
      unified_diff: "",
      removed: false,
    });
    const edits = [{ old_text: "two", new_text: "zwei" }];
    const edited = await callTools(world, cloned.next, ["edit_files", { files: [{ path: "work/a.txt", edits }] }]);
    await followUntil(firstSocket, firstRepositories, (known) => getDiff(known).includes("+zwei\n"));
    using secondSocket = await world.owner.socket(toPath(id).replace("v2", "experimental"));
    const secondRepositories: Repositories = new Map();
    await followUntil(secondSocket, secondRepositories, (known) => getDiff(known).includes("+zwei\n"));
    const command = `cd work && git checkout -q -b fix && ${env} commit -qam fixed`;
    const committed = await callTools(world, edited.next, ["execute", { command, timeout: "60s" }]);
    for (const [socket, known] of [
      [firstSocket, firstRepositories],
      [secondSocket, secondRepositories],
    ] as const) {
      await followUntil(socket, known, () => known.get(root)?.branch === "fix" && getDiff(known) === "");
    }
    expect(secondRepositories).toEqual(firstRepositories);
    // Changes from outside the chat are shown on request. An invalid message gets an error and changes nothing.
    await Bun.write(join(root, "new.txt"), "by hand\n");
    secondSocket.send("{}");
    expect(await secondSocket.json<GitMessage>()).toEqual({ type: "error", message: "unknown message type" });
    secondSocket.send(JSON.stringify({ type: "refresh" }));
    await followUntil(secondSocket, secondRepositories, (known) => getDiff(known).includes("+by hand\n"));
    const removal = await callTools(world, committed.next, ["execute", { command: "rm -rf work", timeout: "60s" }]);
    await followUntil(firstSocket, firstRepositories, (known) => known.size === 0);
    removal.next.finish();
  },
);

testNeeding([needs.git], "[TO-21] hides known secrets in changes and branch names, and keeps every line", async () => {
  const { id, call } = await openChat(world);
  const secret = "SuperSecretValue-77123";
  await world.owner.post("/api/v2/users/me/secrets", { name: "branch", value: `${secret}\n` });
  const root = join(world.home, "leaky");
  makeRepository(root).git("checkout", "-q", "-b", `use-${secret}`);
  using socket = await world.owner.socket(toPath(id));
  const edits = [{ old_text: "two", new_text: secret }];
  const { next } = await callTools(world, call, ["edit_files", { files: [{ path: "leaky/a.txt", edits }] }]);
  const known: Repositories = new Map();
  await followUntil(socket, known, () => known.get(root)?.unified_diff.includes("-two") === true);
  expect(known.get(root)?.branch).toBe("use-[hidden]");
  expect(known.get(root)?.unified_diff).toContain(" one\n-two\n+[hidden]\n three\n");
  await world.owner.delete("/api/v2/users/me/secrets/branch");
  rmSync(root, { recursive: true });
  next.finish();
});

testNeeding(
  [needs.git],
  "[GS-6] requires access to the chat and workspace, gives reasons for refusals, and ends with the access or the agent",
  async () => {
    const { id, call } = await openChat(world);
    call.finish();
    const withoutWorkspace = await createChat(world, "go");
    (await world.models.next()).finish();
    expect(await getRejection(world.owner, withoutWorkspace.id)).toEqual([400, "The chat has no workspace."]);
    const friend = await seedUser(world.server, { organization_id: world.organization_id });
    const friendClient = world.owner.withToken(friend.token);
    expect((await getRejection(friendClient, id))[0]).toBe(404);
    await world.owner.patch(`/api/v2/chats/${id}/acl`, { user_roles: { [friend.user_id]: "read" } });
    expect(await getRejection(friendClient, id)).toEqual([403, "You may not use the workspace of this chat."]);
    const { store } = getContext(world.server);
    const update = updateBy(workspaces, workspaces.id);
    const { workspace_id } = world.seeded;
    await store.commit([update(workspace_id, { user_acl: { [friend.user_id]: "use" } })]);
    using friendSocket = await friendClient.socket(toPath(id));
    await world.owner.patch(`/api/v2/chats/${id}/acl`, { user_roles: { [friend.user_id]: "" } });
    expect(await friendSocket.closed).toEqual({ code: 1008, reason: "you no longer have access to the chat" });
    using ownSocket = await world.owner.socket(toPath(id));
    await world.daemon[Symbol.asyncDispose]();
    expect(await ownSocket.closed).toMatchObject({ code: 1011, reason: expect.stringContaining("agent") });
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
  "[GS-7] shows all changes after the daemon and the server restart, including those made in between",
  async () => {
    await using ownWorld = await openToolWorld();
    const repository = makeRepository(join(ownWorld.home, "work"));
    const { id, call } = await openChat(ownWorld);
    const edits = [{ old_text: "two", new_text: "zwei" }];
    const edited = await callTools(ownWorld, call, ["edit_files", { files: [{ path: "work/a.txt", edits }] }]);
    expect(edited.results).toMatchObject([{ ok: true }]);
    edited.next.finish();
    ownWorld.daemon.process.kill("SIGKILL");
    await ownWorld.daemon.process.exited;
    await Bun.write(join(repository.root, "new.txt"), "by hand\n");
    await ownWorld.restart();
    await using _daemon = await startAgentProcess(ownWorld.server, ownWorld.seeded, ownWorld.home);
    using socket = await ownWorld.owner.socket(toPath(id));
    const known: Repositories = new Map();
    await followUntil(socket, known, () => known.size > 0);
    const diff = known.get(repository.root)?.unified_diff ?? "";
    expect([diff.includes("+zwei\n"), diff.includes("+by hand\n")]).toEqual([true, true]);
  },
);
