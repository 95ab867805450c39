// The context of a workspace, from files on its disk to the model's prompt and the pages: a real server, a real daemon, and a model
// controlled by the test.
import { expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build, query } from "#db/engine/sql.ts";
import { context_snapshots } from "#db/schema/context.ts";
import { updateWorkspace } from "#db/workspaces/workspaces.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { UserSkill } from "#schema/users/user-skill.ts";
import type { Acl } from "#schema/workspaces/acl.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { callTools, openChat, openToolWorld } from "../tools/world.ts";

const world = await forFile(openToolWorld());

const countSnapshots = query(build.select({ id: context_snapshots.id }).from(context_snapshots));

/** Writes the file atomically. */
const writeHomeFile = (path: string, text: string): void => {
  const file = join(world.home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
};
const formatSkill = (name: string, description: string): string =>
  `---\nname: ${name}\ndescription: ${description}\n---\nDo it well.\n`;

const loadChat = (id: string): Promise<Chat> => world.owner.get<Chat>(`/api/v2/chats/${id}`);
const pin = (id: string) => world.owner.fetch("PUT", `/api/v2/chats/${id}/context`, {});
const getSystemPrompt = ({
  request,
}: {
  request: { messages: readonly { content: readonly { text?: string }[] }[] };
}): string => request.messages[0]?.content[0]?.text ?? "";

/** Returns the chat once it matches. The daemon reports changes with a delay. */
const waitForChat = (id: string, isMatch: (chat: Chat) => boolean): Promise<Chat> =>
  until(async () => {
    const chat = await loadChat(id);
    return isMatch(chat) && chat;
  });

/** Pins the context until the chat's context matches. */
const pinUntil = (id: string, matches: (sources: string[]) => boolean): Promise<true> =>
  until(async () => {
    if (matches(listSources(await loadChat(id)))) return true;
    await pin(id);
    return false;
  });
const listSources = ({ context }: Chat): string[] =>
  (context?.resources ?? []).map(({ source, status }) => `${source.slice(world.home.length + 1)} ${status}`);

test("[CX-2] [CX-3] [CX-5] [CX-7] [CX-8] [CX-9] [CX-11] [CH-43] a chat uses its pinned context until it is pinned again; its owner is notified of changes", async () => {
  writeHomeFile("AGENTS.md", "Always greet.");
  writeHomeFile("skills/deploy/SKILL.md", formatSkill("deploy", "how we deploy"));
  writeHomeFile("skills/deploy/steps/one.md", "First.");
  using watch = await world.owner.socket("/api/v2/chats/watch");
  const { id, call } = await openChat(world);
  // The chat may have been created before the daemon had reported both files.
  await pinUntil(id, (sources) => sources.join() === "AGENTS.md ok,skills/deploy ok");
  expect((await loadChat(id)).context?.resources[1]).toEqual({
    kind: "skill",
    status: "ok",
    source: join(world.home, "skills/deploy"),
    error: "",
    size_bytes: 60,
    skill_name: "deploy",
    skill_description: "how we deploy",
  });

  // A chat in a workspace has the IDs of the agent and the build.
  const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/);
  const { workspace_id } = world.seeded;
  expect(await loadChat(id)).toMatchObject({ workspace_id, agent_id: uuid, build_id: uuid });

  writeHomeFile("CLAUDE.md", "Never shout.");
  const dirty = await waitForChat(id, ({ context }) => context?.dirty === true);
  expect(dirty.context).toMatchObject({ error: "", dirty_since: expect.any(String) });
  expect(listSources(dirty)).toHaveLength(2);
  const [listed] = await world.owner.get<Chat[]>("/api/v2/chats");
  expect(listed?.context).toMatchObject({ dirty: true, resources: [] });
  for (;;) {
    const event = JSON.parse(String(await watch.next())) as { kind: string; chat: Chat };
    if (event.kind !== "context_dirty") continue;
    expect(event.chat.id).toBe(id);
    expect(event.chat.context).toMatchObject({ dirty: true, resources: [] });
    break;
  }
  // A changed MCP configuration does not mark the context as dirty, and the context is clean again when the files equal the pinned files.
  writeHomeFile(".mcp.json", "{}");
  rmSync(join(world.home, "CLAUDE.md"));
  const clean = await waitForChat(id, ({ context }) => context?.dirty === false);
  expect(clean.context?.dirty_since).toBeUndefined();
  writeHomeFile("CLAUDE.md", "Never shout.");
  await waitForChat(id, ({ context }) => context?.dirty === true);
  expect((await pin(id)).status).toBe(200);
  expect(listSources(await loadChat(id))).toEqual(["AGENTS.md ok", "CLAUDE.md ok", ".mcp.json ok", "skills/deploy ok"]);

  const { results, next } = await callTools(
    world,
    call,
    ["read_skill", { name: "deploy" }],
    ["read_skill_file", { name: "deploy", path: "steps/one.md" }],
    ["read_skill_file", { name: "deploy", path: "../../AGENTS.md" }],
    ["read_skill", { name: "nothing" }],
  );
  expect(results).toEqual([
    { name: "deploy", body: formatSkill("deploy", "how we deploy"), files: ["steps/one.md"] },
    { content: "First.", file_size: 6, truncated: false },
    { error: "Validation failed. path leads out of the skill's folder" },
    { error: 'There is no skill "nothing".' },
  ]);
  const system = getSystemPrompt(next);
  const order = ["Slipway", "bound to a workspace", "Always greet.", "Never shout.", "- deploy: how we deploy"];
  const positions = order.map((words) => system.indexOf(words));
  expect(positions).toEqual([...positions].sort((a, b) => a - b));
  expect(positions[0]).toBeGreaterThanOrEqual(0);
  next.finish("stop");

  // The errors of resources that cannot be used are reported.
  writeHomeFile("skills/bad/SKILL.md", "no front matter");
  writeHomeFile(".cursorrules", "x".repeat(65_537));
  await waitForChat(id, ({ context }) => context?.dirty === true);
  await pinUntil(id, (sources) => sources.length >= 6);
  const withErrors = (await loadChat(id)).context?.resources.filter(({ error }) => error !== "");
  expect(withErrors).toEqual([
    {
      kind: "instruction_file",
      status: "ok",
      source: join(world.home, ".cursorrules"),
      size_bytes: 65_537,
      error: "has 65537 bytes, more than 65536",
    },
    {
      kind: "skill",
      status: "invalid",
      source: join(world.home, "skills/bad"),
      size_bytes: 15,
      error: expect.stringContaining("SKILL.md"),
    },
  ]);
  rmSync(join(world.home, "skills/bad"), { recursive: true });
  rmSync(join(world.home, ".cursorrules"));
  // Waits until the daemon has reported the removal, before the next test.
  await pinUntil(id, (sources) => sources.length <= 4);
});

test("[CX-7] [CX-8] [CX-10] the context is pinned again for another workspace, and an unreferenced snapshot is deleted", async () => {
  const { store } = getContext(world.server);
  const { id, call } = await openChat(world);
  call.finish("stop");
  expect((await loadChat(id)).context?.dirty).toBe(false);
  await waitForChat(id, ({ status }) => status === "waiting");
  await world.owner.patch(`/api/v2/chats/${id}`, { workspace_id: "00000000-0000-0000-0000-000000000000" });
  expect((await loadChat(id)).context).toBeUndefined();
  expect((await pin(id)).status).toBe(400);
  await world.owner.patch(`/api/v2/chats/${id}`, { workspace_id: world.seeded.workspace_id });
  expect((await loadChat(id)).context?.resources.length).toBeGreaterThan(0);
  // All chats pin the same context of the workspace, so there is only one snapshot.
  for (const chat of await world.owner.get<Chat[]>("/api/v2/chats")) await pin(chat.id);
  expect(await store.scan(countSnapshots())).toHaveLength(1);
});

test("[CX-8] users who have lost access to a workspace receive no new data from it", async () => {
  const { store } = getContext(world.server);
  const { workspace_id, organization_id } = world.seeded;
  const guest = await seedUser(world.server, { organization_id });
  const share = (user_acl: Acl): Promise<void> => store.commit([updateWorkspace(workspace_id, { user_acl })]);
  await share({ [guest.user_id]: "use" });
  const guestWorld = Object.assign(Object.create(world), {
    owner: new Client(world.server.url, guest.token),
  }) as typeof world;
  const { id, call } = await openChat(guestWorld);
  call.finish("stop");
  const loadGuestChat = (chat_id: string): Promise<Chat> => guestWorld.owner.get<Chat>(`/api/v2/chats/${chat_id}`);
  await until(async () => (await loadGuestChat(id)).status === "waiting");
  expect((await loadGuestChat(id)).context).toBeDefined();
  await share({});
  const refused = await guestWorld.owner.fetch("PUT", `/api/v2/chats/${id}/context`, {});
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("no longer use the workspace")]);
  const copy = await guestWorld.owner.post<Chat>(`/api/v2/chats/${id}/fork`, {});
  expect((await loadGuestChat(copy.id)).context).toBeUndefined();
  await share({ [guest.user_id]: "use" });
  expect((await guestWorld.owner.fetch("PUT", `/api/v2/chats/${copy.id}/context`, {})).status).toBe(200);
  expect((await loadGuestChat(copy.id)).context).toBeDefined();
  await share({});
});

test("[CX-11] [CX-13] every chat has its owner's personal skills, with a qualified name if the workspace has a skill of that name", async () => {
  const path = "/api/v2/users/me/skills";
  const write = (body: object) => world.owner.fetch("POST", path, body);
  const created = (await (
    await write({ name: "deploy", description: "my way", content: "Mine." })
  ).json()) as UserSkill;
  await write({ name: "review", description: "how I\nreview", content: "Look." });
  expect((await write({ name: "review", description: "x", content: "y" })).status).toBe(409);
  for (const invalid of [{ name: "A b" }, { description: " " }, { content: "" }, { content: "x".repeat(65_537) }]) {
    expect((await write({ name: "n", description: "d", content: "c", ...invalid })).status).toBe(400);
  }
  const listed = await world.owner.get<UserSkill[]>("/api/experimental/users/me/skills");
  expect(listed.map(({ name, content }) => [name, content])).toEqual([
    ["deploy", undefined],
    ["review", undefined],
  ]);
  expect(await world.owner.patch(`${path}/${created.id}`, { content: "Mine!" })).toMatchObject({ content: "Mine!" });
  const opened = await openChat(world);
  expect(getSystemPrompt(opened.call)).toContain(
    "- personal/deploy: my way\n- review: how I review\n- workspace/deploy: how we",
  );
  const { results, next } = await callTools(
    world,
    opened.call,
    ["read_skill", { name: "personal/deploy" }],
    ["read_skill", { name: "personal/review" }],
    ["read_skill_file", { name: "review", path: "x" }],
  );
  expect(results).toEqual([
    { name: "personal/deploy", body: "Mine!", files: [] },
    { name: "review", body: "Look.", files: [] },
    { error: "This skill is a personal one: it has no files." },
  ]);
  next.finish("stop");
  const withoutWorkspace = await openChat(world, { workspace_id: undefined });
  expect(getSystemPrompt(withoutWorkspace.call)).toContain("- deploy: my way\n- review: how I review");
  withoutWorkspace.call.finish("stop");
  for (let i = 2; i < 100; i++) await write({ name: `n${i}`, description: "d", content: "c" });
  expect((await write({ name: "one-more", description: "d", content: "c" })).status).toBe(409);
  await world.owner.delete(`${path}/${created.id}`);
  expect((await world.owner.fetch("GET", `${path}/${created.id}`)).status).toBe(404);
});
