// Lists of chats: visibility, order, filters, pins and metadata.
import { expect, test } from "bun:test";
import { updateChat } from "#db/chats/chats.ts";
import { type ChatFilter, listPage } from "#db/chats/list.ts";
import { listChatViews, listChildViews } from "#db/chats/views.ts";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import type { Generic } from "#schema/generic.ts";
import { type ChatWorld, createChat, Follower, openChatWorld, toTextContent } from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { SCRIPTED } from "#test/support/models/scripted-models.ts";
import { getContext, getOwnerContext } from "#test/support/seed.ts";

const listTitles = async (world: ChatWorld, query = ""): Promise<string[]> =>
  (await world.owner.get<Chat[]>(`/api/v2/chats${query}`)).map(({ title }) => title);

/** Opens a world with unanswered chats with these titles, each a second newer than the previous one. */
const openWithChats = async (...names: string[]) => {
  const clock = new ManualClock();
  const world = await openChatWorld({ clock });
  const ids: string[] = [];
  for (const name of names) {
    ids.push((await createChat(world, name, { labels: { name, team: "a/b" } })).id);
    clock.advance(1_000);
  }
  return { world, ids, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
};

test("[CH-19] numbers pins without gaps after chats are pinned, moved and unpinned", async () => {
  await using opened = await openWithChats("one", "two", "three", "four");
  const { world, ids } = opened;
  const pin = (index: number, pin_order: number) => world.owner.patch(`/api/v2/chats/${ids[index]}`, { pin_order });
  const listPinned = async () =>
    (await world.owner.get<Chat[]>("/api/v2/chats")).flatMap((chat) => (chat.pin_order ? [chat.title] : []));
  for (const index of [2, 0, 3]) await pin(index, 9);
  expect(await listPinned()).toEqual(["three", "one", "four"]);
  await pin(3, 1);
  expect(await listPinned()).toEqual(["four", "three", "one"]);
  await pin(3, 99);
  expect(await listPinned()).toEqual(["three", "one", "four"]);
  await pin(0, 0);
  expect(await listPinned()).toEqual(["three", "four"]);
  const orders = (await world.owner.get<Chat[]>("/api/v2/chats")).map((chat) => chat.pin_order);
  expect(orders).toEqual([1, 2, 0, 0]);
  expect((await world.owner.fetch("PATCH", `/api/v2/chats/${ids[1]}`, { pin_order: -1 })).status).toBe(400);
});

test("[CH-31] sorts the list by most recent activity, and returns pages by offset and cursor", async () => {
  await using opened = await openWithChats("one", "two", "three");
  const { world, ids } = opened;
  // Turns start in the order of the chats. Once all are recorded, the order is final.
  for (const id of ids) {
    using follower = await Follower.open(world.owner, id);
    await world.models.next();
    await follower.until(({ events }) => events.some(({ type }) => type === "preview_reset"));
  }
  expect(await listTitles(world)).toEqual(["three", "two", "one"]);
  expect(await listTitles(world, "?limit=1&offset=1")).toEqual(["two"]);
  expect(await listTitles(world, `?after_id=${ids[1]}`)).toEqual(["one"]);
  expect((await world.owner.fetch("GET", `/api/v2/chats?after_id=${crypto.randomUUID()}`)).status).toBe(400);
  expect((await world.owner.fetch("GET", "/api/v2/chats?limit=-1")).status).toBe(400);
});

test("[CH-32] filters by title, archive, unread mark, source and labels; errors name the filter", async () => {
  await using opened = await openWithChats("Fix the tests", "50% off", "other");
  const { world } = opened;
  expect(await listTitles(world, "?q=title:TESTS")).toEqual(["Fix the tests"]);
  expect(await listTitles(world, `?q=${encodeURIComponent('title:"the tests"')}`)).toEqual(["Fix the tests"]);
  expect(await listTitles(world, `?q=${encodeURIComponent("title:0%")}`)).toEqual(["50% off"]);
  expect(await listTitles(world, "?q=archived:true")).toEqual([]);
  expect((await listTitles(world, "?q=has_unread:false")).length).toBe(3);
  expect(await listTitles(world, "?q=source:shared_with_me")).toEqual([]);
  expect((await listTitles(world, "?q=source:created_by_me,shared_with_me")).length).toBe(3);
  expect(await listTitles(world, "?q=pr_status:open")).toEqual([]);
  expect(await listTitles(world, "?label=name:other")).toEqual(["other"]);
  expect(await listTitles(world, "?label=name:other&label=team:a/b")).toEqual(["other"]);
  expect(await listTitles(world, "?label=name:other&label=team:b")).toEqual([]);
  for (const [query, field] of [
    ["q=word", "q"],
    ["q=colour:red", "colour"],
    ["q=has_unread:maybe", "has_unread"],
    ["q=pr:zero", "pr"],
    ["q=pr_status:lost", "pr_status"],
    ["q=diff_url:word", "diff_url"],
    ["label=word", "label"],
    ["label=:word", "label"],
    [Array(51).fill("label=a:b").join("&"), "label"],
  ]) {
    const response = await world.owner.fetch("GET", `/api/v2/chats?${query}`);
    const body = (await response.json()) as Generic;
    expect([query, response.status, body.validations?.[0]?.field]).toEqual([query, 400, field]);
  }
});

test("[CH-33] checks the fields of a new chat in order, and changes nothing after a refusal", async () => {
  await using world = await openChatWorld();
  const { organization_id } = world;
  const validChat = { organization_id, content: toTextContent("hello") };
  const tooManyTools = Array.from({ length: 251 }, (_, index) => ({ name: `tool-${index}` }));
  const labels = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, "v"]));
  const cases: [Record<string, unknown>, number, string?][] = [
    [{ ...validChat, organization_id: crypto.randomUUID(), content: [] }, 403],
    [{ ...validChat, content: [], model_config_id: crypto.randomUUID() }, 400, "content"],
    [{ ...validChat, content: [{ type: "text", text: "  " }] }, 400, "content.0.text"],
    [{ ...validChat, content: [{ type: "video" }] }, 400, "content.0.type"],
    [{ ...validChat, content: [{ type: "file" }] }, 400, "content.0.file_id"],
    [{ ...validChat, content: [{ type: "file-reference" }] }, 400, "content.0.file_name"],
    [{ ...validChat, workspace_id: crypto.randomUUID(), model_config_id: crypto.randomUUID() }, 400, "workspace_id"],
    [{ ...validChat, model_config_id: crypto.randomUUID(), plan_mode: "x" }, 400, "model_config_id"],
    [{ ...validChat, plan_mode: "x", mcp_server_ids: [crypto.randomUUID()] }, 400, "plan_mode"],
    [{ ...validChat, mcp_server_ids: [crypto.randomUUID()], labels }, 400, "mcp_server_ids"],
    [{ ...validChat, labels, unsafe_dynamic_tools: tooManyTools }, 400, "labels"],
    [{ ...validChat, labels: { "-a": "b" } }, 400, "labels"],
    [{ ...validChat, labels: { a: "" } }, 400, "labels"],
    [{ ...validChat, unsafe_dynamic_tools: tooManyTools, client_type: "x" }, 400, "unsafe_dynamic_tools"],
    [{ ...validChat, unsafe_dynamic_tools: [{ name: "a" }, { name: "a" }] }, 400, "unsafe_dynamic_tools"],
    [{ ...validChat, unsafe_dynamic_tools: [{ name: "a", input_schema: "x" }] }, 400, "unsafe_dynamic_tools"],
    [{ ...validChat, client_type: "x", reasoning_effort: "x" }, 400, "client_type"],
    [{ ...validChat, reasoning_effort: "x" }, 400, "reasoning_effort"],
  ];
  for (const [body, status, field] of cases) {
    const response = await world.owner.fetch("POST", "/api/v2/chats", body);
    const answer = (await response.json()) as Generic;
    expect([response.status, answer.validations?.[0]?.field]).toEqual([status, field]);
  }
  const large = { ...validChat, content: toTextContent("x".repeat(262_144)) };
  expect((await world.owner.fetch("POST", "/api/v2/chats", large)).status).toBe(413);
  expect(await listTitles(world)).toEqual([]);
  const created = await createChat(world, "one two three four five six seven", {
    client_type: "ui",
    plan_mode: "plan",
    reasoning_effort: "high",
    labels: { "a.b/c": "x:y, z" },
    system_prompt: "Be brief.",
  });
  expect(created).toMatchObject({
    title: "one two three four five six…",
    client_type: "ui",
    plan_mode: "plan",
    last_reasoning_effort: "high",
    labels: { "a.b/c": "x:y, z" },
  });
  const call = await world.models.next();
  expect(call.request.messages.map(({ role }) => role)).toEqual(["system", "user"]);
  expect(call.request.reasoning_effort).toBe("high");
});

test("[CH-34] validates metadata, and changes it completely or not at all", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "one", { labels: { a: "b" } });
  const path = `/api/v2/chats/${id}`;
  for (const body of [
    { title: " " },
    { title: "x".repeat(201) },
    { title: "ok", labels: { "": "b" } },
    { title: "ok", plan_mode: "x" },
    { title: "ok", workspace_id: crypto.randomUUID() },
  ]) {
    expect((await world.owner.fetch("PATCH", path, body)).status).toBe(400);
  }
  expect((await world.owner.get<Chat>(path)).title).toBe("one");
  expect((await world.owner.fetch("PATCH", path, {})).status).toBe(204);
  await world.owner.patch(path, { title: "  A name ", labels: null, plan_mode: "plan" });
  expect(await world.owner.get<Chat>(path)).toMatchObject({ title: "A name", labels: { a: "b" }, plan_mode: "plan" });
  await world.owner.patch(path, { labels: {}, plan_mode: "" });
  const cleared = await world.owner.get<Chat>(path);
  expect([cleared.labels, cleared.plan_mode]).toEqual([{}, undefined]);
});

test("[CH-38] shows a chat in an invalid state as failed; a reconciliation keeps its queue", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "one");
  const path = `/api/v2/chats/${id}`;
  using follower = await Follower.open(world.owner, id);
  await world.models.next();
  await world.owner.post(`${path}/messages`, { content: toTextContent("two") });
  await world.owner.post(`${path}/interrupt`);
  (await world.models.next()).fail("auth");
  await follower.until(({ status }) => status === "error");
  await world.owner.post(`${path}/messages`, { content: toTextContent("three") });
  const { store, chats } = getContext(world.server);
  await world.models.next();
  await world.owner.post(`${path}/messages`, { content: toTextContent("four") });
  await store.commit([updateChat(id, { status: "completed" })]);
  await chats.ask(id, "reload", {});
  expect((await world.owner.get<Chat>(path)).status).toBe("error");
  const refusals = [
    await world.owner.fetch("POST", `${path}/messages`, { content: toTextContent("x") }),
    await world.owner.fetch("POST", `${path}/interrupt`),
    await world.owner.fetch("PATCH", path, { archived: true }),
  ];
  expect(refusals.map(({ status }) => status)).toEqual([409, 409, 409]);
  const chat = await world.owner.post<Chat>(`${path}/reconcile-invalid`);
  expect([chat.status, chat.last_error?.kind, chat.archived]).toEqual(["error", "generic", false]);
  const { queued_messages } = await world.owner.get<MessagePage>(`${path}/messages`);
  expect(queued_messages.flatMap(({ content }) => content.map(({ text }) => text))).toEqual(["four"]);
  expect((await world.owner.fetch("POST", `${path}/reconcile-invalid`)).status).toBe(409);
});

test("[CH-39] archives and restores sub-chats with their root, all or none", async () => {
  await using world = await openChatWorld();
  const { user_id, organization_id } = world;
  const root = await createChat(world, "root");
  using follower = await Follower.open(world.owner, root.id);
  (await world.models.next()).finish();
  await follower.until(({ status }) => status === "waiting");
  const { chats } = getOwnerContext(world.server, user_id);
  const child = crypto.randomUUID();
  await chats.ask(child, "create", {
    chat: {
      id: child,
      organization_id,
      owner_id: user_id,
      workspace_id: null,
      client_type: "api",
      plan_mode: null,
      parent_chat_id: root.id,
      root_chat_id: root.id,
      last_model_config_id: SCRIPTED.id,
      title: "child",
      last_reasoning_effort: "",
      labels: {},
      mcp_server_ids: [],
      dynamic_tools: [],
    },
    messages: [
      {
        role: "user",
        visibility: "both",
        created_by: user_id,
        model_config_id: null,
        usage: null,
        content: [{ type: "text", text: "work" }],
      },
    ],
  });
  const call = await world.models.next();
  const path = `/api/v2/chats/${root.id}`;
  const setArchived = async (id: string, archived: boolean) =>
    (await world.owner.fetch("PATCH", `/api/v2/chats/${id}`, { archived })).status;
  expect(await setArchived(root.id, true)).toBe(409);
  expect((await world.owner.get<Chat>(path)).archived).toBe(false);
  using childFollower = await Follower.open(world.owner, child);
  call.finish();
  await childFollower.until(({ status }) => status === "waiting");
  expect(await setArchived(child, true)).toBe(400);
  expect(await setArchived(root.id, true)).toBe(204);
  expect(await world.owner.get<Chat>(path)).toMatchObject({
    archived: true,
    children: [{ id: child, archived: true }],
  });
  const sent = await world.owner.fetch("POST", `/api/v2/chats/${child}/messages`, { content: toTextContent("x") });
  expect(sent.status).toBe(409);
  expect(await setArchived(root.id, false)).toBe(204);
  expect((await world.owner.get<Chat[]>("/api/v2/chats")).map(({ children }) => children.length)).toEqual([1]);
  await world.owner.post(`/api/v2/chats/${child}/messages`, { content: toTextContent("go on") });
  expect((await world.models.next()).prompt).toBe("go on");
});

test("[ID-25] only users who have started a chat have a seat", async () => {
  await using world = await openChatWorld();
  const hasSeat = async (): Promise<boolean> =>
    (await world.owner.get<{ has_ai_seat: boolean }>("/api/v2/users/me")).has_ai_seat;
  expect(await hasSeat()).toBe(false);
  await createChat(world, "hello");
  expect(await hasSeat()).toBe(true);
  await createChat(world, "again");
  expect(await hasSeat()).toBe(true);
});

test("[CH-31] the queries of a list read no messages, and no columns that only turns need", () => {
  const filter: ChatFilter = {
    owner_id: "",
    mine: true,
    shared_with: ["a"],
    archived: false,
    labels: [],
    pull: { statuses: [] },
  };
  const page = { limit: 50, offset: 0 };
  for (const { sql } of [listPage(filter, page), listChatViews(["a"]), listChildViews(["a"])]) {
    expect(sql).not.toMatch(/\b(?:messages|pending_calls|dynamic_tools|agent_session|retry_state|compaction)\b/);
  }
});
