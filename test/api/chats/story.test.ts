// The life of a chat through the public API: sending, queuing, editing, interrupting, tools, errors, and the events of followers.
import { expect, test } from "bun:test";
import type { Chat, EditedMessage, MessagePage, Prompts } from "#schema/chats/chat.ts";
import type { WatchEvent } from "#schema/chats/chat-event.ts";
import { Client } from "#src/client.ts";
import { createChat, Follower, loadHistory, openChatWorld, sendMessage, toTextContent } from "#test/support/chats.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

test("[CH-20] a follower gets the snapshot, and then every part and message once and in order", async () => {
  await using world = await openChatWorld();
  const chat = await createChat(world, "What is the capital of France, please tell me now");
  expect(chat).toMatchObject({ status: "running", title: "What is the capital of France,…", children: [], files: [] });
  using follower = await Follower.open(world.owner, chat.id);
  const call = await world.models.next();
  await follower.until(({ status }) => status === "running");
  expect(follower.events.map(({ type }) => type).slice(0, 2)).toEqual(["message", "status"]);
  call.say("Par", "is");
  await follower.until(({ preview }) => preview === "Paris");
  call.finish();
  await follower.until(({ status, preview }) => status === "waiting" && preview === "");
  expect(follower.history).toEqual(["user: What is the capital of France, please tell me now", "assistant: Paris"]);
  expect(await loadHistory(world.owner, chat.id)).toEqual(follower.history);
});

test("[CH-21] a late follower gets the output of the turn from its first part", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world);
  using earlyFollower = await Follower.open(world.owner, id);
  (await world.models.next()).say("one ", "two ", "three");
  await earlyFollower.until(({ preview }) => preview === "one two three");
  using lateFollower = await Follower.open(world.owner, id);
  await lateFollower.until(({ preview }) => preview === "one two three");
  expect(lateFollower.events.map(({ type }) => type)).toEqual([
    ...["message", "status", "preview_reset", "message_part", "message_part", "message_part"],
  ] as never);
});

test("[CH-22] with after_id, the snapshot omits known messages; after an edit, all followers start over", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).say("a").finish();
  await follower.until(({ status }) => status === "waiting");
  const [firstId, lastId] = [...follower.messages.keys()] as [number, number];
  using resumed = await Follower.open(world.owner, id, lastId);
  await resumed.until(({ status }) => status === "waiting");
  expect([...resumed.messages.keys()]).toEqual([]);
  const edited = await world.owner.patch<EditedMessage>(`/api/v2/chats/${id}/messages/${firstId}`, {
    content: toTextContent("two"),
  });
  expect(edited.deleted_message_ids).toEqual([firstId, lastId]);
  for (const connected of [follower, resumed]) {
    await connected.until(({ status, messages }) => status === "running" && messages.has(edited.message.id));
    expect(connected.events.some(({ type }) => type === "history_reset")).toBe(true);
    expect(connected.history).toEqual(["user: two"]);
  }
  (await world.models.next()).say("b").finish();
  await resumed.until(({ status }) => status === "waiting");
  expect(resumed.history).toEqual(["user: two", "assistant: b"]);
});

test("[CH-23] followers get queued messages, which can be deleted and promoted", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(world.owner, id);
  await world.models.next();
  const queued = [];
  for (const text of ["two", "three", "four"]) queued.push(await sendMessage(world, id, text));
  expect(queued.map((created) => [created.queued, created.message, created.messages])).toEqual(
    queued.map(() => [true, undefined, []]) as never,
  );
  await follower.until(({ queue }) => queue.length === 3);
  await world.owner.delete(`/api/v2/chats/${id}/queue/${queued[0]?.queued_message?.id}`);
  const response = await world.owner.fetch(
    "POST",
    `/api/v2/chats/${id}/queue/${queued[2]?.queued_message?.id}/promote`,
  );
  expect([response.status, await response.json()]).toEqual([202, { message: "The queued message is next." }]);
  const next = await world.models.next();
  expect(next.prompt).toBe("four");
  await follower.until(({ queue, status }) => queue.length === 1 && status === "running");
  next.finish();
  (await world.models.next()).finish();
  await follower.until(({ queue, status }) => queue.length === 0 && status === "waiting");
  expect(follower.history).toEqual(["user: one", "user: four", "assistant: Done.", "user: three", "assistant: Done."]);
});

test("[CH-23] a message that interrupts stops the turn, keeps its output, and goes next", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).say("half");
  await follower.until(({ preview }) => preview === "half");
  const sent = await sendMessage(world, id, "stop that", { busy_behavior: "interrupt" });
  expect(sent.queued).toBe(true);
  expect((await world.models.next()).prompt).toBe("stop that");
  await follower.until(({ messages }) => messages.size === 3);
  expect(follower.history).toEqual(["user: one", "assistant: half", "user: stop that"]);
});

test("[CH-24] client tools are requested with their arguments and answered; watchers are notified, and invalid answers refused", async () => {
  await using world = await openChatWorld();
  const watch = await world.owner.socket("/api/v2/chats/watch");
  const { id } = await createChat(world, "go", {
    unsafe_dynamic_tools: [{ name: "ask", description: "asks", input_schema: { type: "object" } }],
  });
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).callTool("c1", "ask", { q: 1 }).finish("tool_calls");
  await follower.until(({ events }) => events.some(({ type }) => type === "action_required"));
  const expectedCalls = { tool_calls: [{ tool_call_id: "c1", tool_name: "ask", args: '{"q":1}' }] };
  expect(follower.events.find(({ type }) => type === "action_required")).toMatchObject({
    action_required: expectedCalls,
  });
  const kinds: string[] = [];
  let event: WatchEvent;
  do {
    event = await watch.json<WatchEvent>();
    kinds.push(`${event.kind} ${event.chat.status}`);
  } while (event.kind !== "action_required");
  expect(event).toMatchObject(expectedCalls);
  expect(kinds.slice(-2)).toEqual(["status_change requires_action", "action_required requires_action"]);
  const answer = (results: unknown) => world.owner.fetch("POST", `/api/v2/chats/${id}/tool-results`, { results });
  expect((await answer([])).status).toBe(400);
  expect((await answer([{ tool_call_id: "c2", output: 1 }])).status).toBe(400);
  expect((await answer([{ tool_call_id: "c1", output: { a: [1, "x"] } }])).status).toBe(204);
  expect((await answer([{ tool_call_id: "c1", output: 1 }])).status).toBe(409);
  const call = await world.models.next();
  expect(call.request.messages.at(-1)?.content[0]?.result).toEqual({ a: [1, "x"] });
  call.say("thanks").finish();
  await follower.until(({ status }) => status === "waiting");
  watch.close();
});

test("[CH-25] followers get retries and errors; the next message clears the error", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).fail("auth", { status_code: 401, provider: "acme" });
  await follower.until(({ events }) => events.some(({ type }) => type === "error"));
  const expected = { kind: "auth", provider: "acme", status_code: 401, retryable: false };
  expect(follower.events.find(({ type }) => type === "error")).toMatchObject({ error: expected });
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).last_error).toMatchObject(expected);
  const sent = await sendMessage(world, id, "two");
  expect([sent.queued, sent.message?.role, sent.messages.length]).toEqual([false, "user", 1]);
  const chat = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  expect([chat.status, chat.last_error]).toEqual(["running", undefined]);
  (await world.models.next()).fail("overloaded", { status_code: 529 });
  await follower.until(({ events }) => events.some(({ type }) => type === "retry"));
  expect(follower.events.find(({ type }) => type === "retry")).toMatchObject({
    retry: { attempt: 1, delay_ms: 1_000, kind: "overloaded", status_code: 529 },
  });
});

test("[CH-26] serves the same events as server-sent events, and disconnects a client that sends a message", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(world.owner, id);
  follower.send("hello?");
  expect((await follower.closed).code).toBe(1008);
  const abort = new AbortController();
  const response = await world.owner.fetch("GET", `/api/v2/chats/${id}/stream`, undefined, {
    headers: { accept: "text/event-stream" },
    signal: abort.signal,
  });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk);
    if (text.includes('"status":"running"')) break;
  }
  expect(text).toContain('event: data\ndata: [{"type":"message"');
  abort.abort();
});

test("[CH-27] a chat is unread until its owner follows it; archived chats are silent and can be restored", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "one");
  const path = `/api/v2/chats/${id}`;
  const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
  {
    using outsider = await Follower.open(admin, id);
    (await world.models.next()).say("a").finish();
    await outsider.until(({ status }) => status === "waiting");
  }
  expect((await world.owner.get<Chat>(path)).has_unread).toBe(true);
  const listByUnread = (q: string) => world.owner.get<Chat[]>(`/api/v2/chats?q=has_unread:${q}`);
  expect([(await listByUnread("true")).map((chat) => chat.id), await listByUnread("false")]).toEqual([[id], []]);
  const watch = await world.owner.socket("/api/v2/chats/watch");
  await world.owner.patch(path, { pin_order: 3 });
  expect((await world.owner.get<Chat>(path)).pin_order).toBe(1);
  await world.owner.patch(path, { archived: true });
  expect((await watch.json<WatchEvent>()).kind).toBe("deleted");
  expect(await world.owner.get<Chat>(path)).toMatchObject({ archived: true, pin_order: 0 });
  expect(await world.owner.get<Chat[]>("/api/v2/chats")).toEqual([]);
  expect((await world.owner.get<Chat[]>("/api/v2/chats?q=archived:true")).map((chat) => chat.id)).toEqual([id]);
  const refusals = [
    await world.owner.fetch("POST", `${path}/messages`, { content: toTextContent("x") }),
    await world.owner.fetch("POST", `${path}/interrupt`),
    await world.owner.fetch("PATCH", path, { archived: true }),
  ];
  expect(refusals.map(({ status }) => status)).toEqual([409, 409, 400]);
  await world.owner.patch(path, { archived: false });
  expect((await watch.json<WatchEvent>()).kind).toBe("created");
  using follower = await Follower.open(world.owner, id);
  await follower.until(({ status }) => status === "waiting");
  // A follower's read position is recorded after the messages are sent.
  await until(async () => !(await world.owner.get<Chat>(path)).has_unread);
  await sendMessage(world, id, "two");
  expect((await world.owner.fetch("PATCH", path, { archived: true })).status).toBe(409);
  watch.close();
});

test("[CH-28] other users cannot see a chat; the deployment's owner can read and stop it, but not write", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "one");
  const { token } = await seedUser(world.server, { organization_id: world.organization_id });
  const otherUser = new Client(world.server.url, token);
  const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
  const listStatuses = async (client: Client) => {
    const path = `/api/v2/chats/${id}`;
    const responses = [
      await client.fetch("GET", path),
      await client.fetch("GET", `${path}/messages`),
      await client.fetch("GET", `${path}/stream`),
      await client.fetch("POST", `${path}/messages`, { content: toTextContent("x") }),
      await client.fetch("POST", `${path}/queue/1/promote`),
      await client.fetch("POST", `${path}/tool-results`, { results: [] }),
      await client.fetch("POST", `${path}/reconcile-invalid`),
      await client.fetch("POST", `${path}/interrupt`),
    ];
    return responses.map(({ status }) => status);
  };
  expect(await listStatuses(otherUser)).toEqual([404, 404, 404, 404, 404, 404, 404, 404]);
  expect(await listStatuses(admin)).toEqual([200, 200, 400, 403, 403, 403, 409, 200]);
});

test("[CH-29] returns pages of the history and the prompts, and enforces their limits", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(world.owner, id);
  for (const text of ["two", "three"]) {
    (await world.models.next()).say("so").finish();
    await follower.until(({ status, messages }) => status === "waiting" && messages.size % 2 === 0);
    await sendMessage(world, id, text);
    await follower.until(({ status }) => status === "running");
  }
  const ids = [...follower.messages.keys()];
  const getPage = (query: string) => world.owner.get<MessagePage>(`/api/v2/chats/${id}/messages${query}`);
  const listIds = ({ messages }: MessagePage): number[] => messages.map((message) => message.id);
  const newest = await getPage("?limit=2");
  expect([listIds(newest), newest.has_more]).toEqual([ids.slice(-2).reverse(), true]);
  expect(listIds(await getPage(`?after_id=${ids[1]}&limit=2`))).toEqual(ids.slice(2, 4));
  expect(listIds(await getPage(`?after_id=${ids[0]}&before_id=${ids[2]}`))).toEqual(ids.slice(1, 2));
  for (const query of ["?limit=0", "?limit=201", "?after_id=-1", "?after_id=5&before_id=5"]) {
    expect((await world.owner.fetch("GET", `/api/v2/chats/${id}/messages${query}`)).status).toBe(400);
  }
  const { prompts } = await world.owner.get<Prompts>(`/api/v2/chats/${id}/prompts`);
  expect(prompts.map(({ text }) => text)).toEqual(["three", "two", "one"]);
});

test("[CH-30] the demo model answers while no model is configured, and says that it is a demo", async () => {
  await using server = await startTestServer();
  const { token, organization_id } = await seedUser(server);
  const owner = new Client(server.url, token);
  const { id } = await owner.post<Chat>("/api/v2/chats", { organization_id, content: toTextContent("hello there") });
  using follower = await Follower.open(owner, id);
  await follower.until(({ preview }) => preview.includes("demo"));
  await follower.until(({ status }) => status === "waiting");
  expect(follower.history[1]).toContain("hello there");
});
