// The specification's chat tables from a caller's point of view: the members of responses and events, and their order. SPEC.md names the
// test of every row; this file covers the rows that no other test covers, with one server.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Chat, ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import type { ChatEvent, WatchEvent } from "#schema/chats/chat-event.ts";
import {
  type ChatWorld,
  createChat,
  Follower,
  openChatWorld,
  sendMessage,
  toTextContent,
} from "#test/support/chats.ts";
import { describeInProcess, testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const CHATS = "/api/v2/chats";
const listKeys = (value: object): string[] => Object.keys(value).sort();
/** Members that every chat has. */
const CHAT_MEMBERS = [
  ...["archived", "children", "client_type", "created_at", "files", "has_unread", "id", "labels"],
  ...["last_model_config_id", "last_turn_summary", "mcp_server_ids", "organization_id", "owner_id", "owner_name"],
  ...[
    "owner_username",
    "permission_mode",
    "pin_order",
    "queued_for_capacity",
    "shared",
    "status",
    "title",
    "updated_at",
    "warnings",
  ],
];
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);

describeInProcess("the specification", () => {
  let world: ChatWorld;
  beforeAll(async () => {
    world = await openChatWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const getChat = (id: string) => world.owner.get<Chat>(`${CHATS}/${id}`);
  const waitForTurnEnd = async (id: string): Promise<void> => {
    using follower = await Follower.open(world.owner, id);
    await follower.until(({ status }) => status === "waiting");
  };

  test("[CH-43] a chat has the specification's members in every response and event; missing values are absent", async () => {
    using watch = await world.owner.socket(`${CHATS}/watch`);
    const chat = await createChat(world);
    expect(listKeys(chat)).toEqual(CHAT_MEMBERS);
    expect(chat).toMatchObject({
      archived: false,
      has_unread: false,
      shared: false,
      queued_for_capacity: false,
      pin_order: 0,
      children: [],
      files: [],
      labels: {},
      mcp_server_ids: [],
      warnings: [],
      client_type: "api",
      status: "running",
      last_turn_summary: "",
      owner_id: world.user_id,
      organization_id: world.organization_id,
      created_at: TIME,
      updated_at: TIME,
    });
    const createdEvent = await watch.json<WatchEvent>();
    expect([listKeys(createdEvent), createdEvent.kind, listKeys(createdEvent.chat)]).toEqual([
      ["chat", "kind"],
      "created",
      CHAT_MEMBERS,
    ]);
    const call = await world.models.next();
    const [listedChat] = await world.owner.get<Chat[]>(CHATS);
    expect([listKeys(listedChat as Chat), listKeys(await getChat(chat.id))]).toEqual([CHAT_MEMBERS, CHAT_MEMBERS]);
    call.fail("rate_limit", { provider: "acme", status_code: 429, retryable: false });
    using follower = await Follower.open(world.owner, chat.id);
    await follower.until(({ events }) => events.some(({ type }) => type === "error"));
    const failedChat = await getChat(chat.id);
    expect(listKeys(failedChat)).toEqual([...CHAT_MEMBERS, "last_error"].sort());
    expect(failedChat.last_error).toEqual({
      kind: "rate_limit",
      message: expect.any(String),
      detail: "A scripted failure.",
      provider: "acme",
      retryable: false,
      status_code: 429,
    });
  });

  test("[CH-17] [CH-43] a chat that waits for a slot shows this when it is read alone, but not in lists", async () => {
    const chats: Chat[] = [];
    for (let index = 0; index < 6; index++) chats.push(await createChat(world, `slot ${index}`));
    const calls = [];
    for (let index = 0; index < 5; index++) calls.push(await world.models.next());
    const waiting = (await Promise.all(chats.map(({ id }) => getChat(id)))).filter((chat) => chat.queued_for_capacity);
    expect(waiting.map(({ title, status }) => [title, status])).toEqual([["slot 5", "running"]]);
    const listedChats = await world.owner.get<Chat[]>(CHATS);
    expect(listedChats.some((chat) => chat.queued_for_capacity)).toBe(false);
    for (const call of calls) call.finish();
    (await world.models.next()).finish();
    for (const { id } of chats) await waitForTurnEnd(id);
    expect((await getChat(chats[5]?.id as string)).queued_for_capacity).toBe(false);
  });

  test("[CH-44] messages and their parts have the specification's members, both live and stored", async () => {
    const { id } = await createChat(world, "go");
    using follower = await Follower.open(world.owner, id);
    const call = await world.models.next();
    call.push({ type: "reasoning", delta: "hm" }, { type: "text", delta: "so" });
    call.push({ type: "tool_call_delta", id: "c", name: "execute", delta: "{}" });
    call.callTool("c", "execute", { command: "cd /tmp && /usr/bin/git -C x status | wc" });
    call.push({ type: "usage", usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7, context_limit: 100 } });
    call.finish("tool_calls");
    const next = await world.models.next();
    next.push({ type: "source", source_id: "s", url: "http://example.com/", title: "T" }).finish();
    await follower.until(({ status, messages }) => status === "waiting" && messages.size === 4);
    const { messages } = await world.owner.get<MessagePage>(`${CHATS}/${id}/messages`);
    const [user, assistant, tool, sourced] = messages.reverse() as [ChatMessage, ChatMessage, ChatMessage, ChatMessage];
    expect([...follower.messages.values()]).toEqual(messages);
    const commonMembers = { id: expect.any(Number), chat_id: id, created_at: TIME };
    const model_config_id = expect.any(String);
    expect(user).toEqual({
      ...commonMembers,
      role: "user",
      content: toTextContent("go") as never,
      created_by: world.user_id,
      model_config_id,
    });
    expect(assistant).toEqual({
      ...commonMembers,
      role: "assistant",
      model_config_id,
      content: [
        { type: "reasoning", text: "hm", created_at: TIME, completed_at: TIME },
        { type: "text", text: "so" },
        {
          type: "tool-call",
          tool_call_id: "c",
          tool_name: "execute",
          created_at: TIME,
          args: { command: "cd /tmp && /usr/bin/git -C x status | wc" },
          parsed_commands: [["cd", "/tmp"], ["git", "x"], ["wc"]],
        },
      ],
      usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7, context_limit: 100 },
    });
    const result = {
      type: "tool-result",
      tool_call_id: "c",
      tool_name: "execute",
      created_at: TIME,
      is_error: true,
      result: { error: expect.any(String) },
    };
    expect(tool).toEqual({ ...commonMembers, role: "tool", content: [result] as never });
    expect(sourced.content).toEqual([{ type: "source", source_id: "s", url: "http://example.com/", title: "T" }]);
    const liveParts = follower.events.flatMap((event) => (event.type === "message_part" ? [event.message_part] : []));
    for (const part of liveParts) {
      expect(listKeys(part)).toEqual(["generation_attempt", "history_version", "part", "role", "seq"]);
    }
    const parts = liveParts.map(({ role, part }) => ({ role, ...part }));
    expect(parts).toContainEqual({ role: "assistant", type: "reasoning", text: "hm", created_at: TIME } as never);
    expect(parts).toContainEqual({ role: "assistant", type: "reasoning", text: "", completed_at: TIME } as never);
    const startedCall = {
      role: "assistant",
      type: "tool-call",
      tool_call_id: "c",
      tool_name: "execute",
      args_delta: "{}",
    };
    expect(parts).toContainEqual(startedCall as never);
    expect(parts).toContainEqual({ role: "assistant", ...assistant.content[2] } as never);
    for (const event of follower.events) expect(event.chat_id).toBe(id);
  });

  test("[CH-45] optional IDs are {uuid, valid}, and plain for clients that use the upstream names", async () => {
    const headers = { "content-type": "text/plain", "content-disposition": 'attachment; filename="n.txt"' };
    const files = `${CHATS}/files?organization=${world.organization_id}`;
    const file = (await (await world.owner.fetch("POST", files, "notes", { headers })).json()) as { id: string };
    const { id } = await createChat(world, "", { content: [{ type: "file", file_id: file.id }] });
    const call = await world.models.next();
    const shownPart = { type: "file", media_type: "text/plain", name: "n.txt" } as const;
    const page = await world.owner.get<MessagePage>(`${CHATS}/${id}/messages`);
    expect(page.messages[0]?.content).toEqual([{ ...shownPart, file_id: { uuid: file.id, valid: true } }]);
    const upstream = { headers: { "Coder-Session-Token": world.owner.token as string } };
    const anonymous = world.owner.withToken(undefined);
    const plain = await anonymous.get<MessagePage>(`${CHATS}/${id}/messages`, upstream);
    expect(plain.messages[0]?.content).toEqual([{ ...shownPart, file_id: file.id }]);
    const sent = await sendMessage(world, id, "", { content: [{ type: "file", file_id: file.id }] });
    expect(sent.queued_message?.content).toEqual([{ ...shownPart, file_id: { uuid: file.id, valid: true } }]);
    const socket = await anonymous.socket(`${CHATS}/${id}/stream`, upstream);
    const [first, queue] = (await readEventsUntil(socket, ({ type }) => type === "queue_update")) as [
      ChatEvent,
      ChatEvent,
    ];
    expect(first).toMatchObject({ message: { content: [{ file_id: file.id }] } });
    expect(queue).toMatchObject({ queued_messages: [{ content: [{ file_id: file.id }] }] });
    socket.close();
    call.finish();
    (await world.models.next()).finish();
    await waitForTurnEnd(id);
  });

  test("[CH-20] the snapshot keeps its order with a queue and a retry, an error or pending calls", async () => {
    const readSnapshot = async (id: string) => {
      const socket = await world.owner.socket(`${CHATS}/${id}/stream`);
      const events = await readEventsUntil(socket, ({ type }) => type === "preview_reset");
      socket.close();
      return events;
    };
    const { id } = await createChat(world, "one", { unsafe_dynamic_tools: [{ name: "ask", input_schema: {} }] });
    using follower = await Follower.open(world.owner, id);
    const overload = { provider: "acme", status_code: 529, retry_after_ms: 300_000 };
    (await world.models.next()).fail("overloaded", overload);
    await sendMessage(world, id, "two");
    await follower.until(({ events }) => events.some(({ type }) => type === "retry"));
    const withRetry = await readSnapshot(id);
    expect(withRetry.map(({ type }) => type)).toEqual(["message", "queue_update", "status", "retry", "preview_reset"]);
    expect(withRetry.find(({ type }) => type === "retry")).toEqual({
      type: "retry",
      chat_id: id,
      retry: {
        attempt: 1,
        delay_ms: 300_000,
        error: expect.any(String),
        kind: "overloaded",
        provider: "acme",
        retrying_at: TIME as unknown as string,
        status_code: 529,
      },
    });
    await world.owner.post(`${CHATS}/${id}/interrupt`);
    await sendMessage(world, id, "three");
    (await world.models.next()).fail("auth");
    await follower.until(({ status }) => status === "error");
    const withError = (await readSnapshot(id)).map(({ type }) => type);
    expect(withError).toEqual(["message", "message", "queue_update", "status", "error", "preview_reset"]);
    const sent = await sendMessage(world, id, "four");
    expect([sent.queued, sent.queued_message?.content[0]?.text]).toEqual([true, "four"]);
    (await world.models.next()).callTool("c", "ask").finish("tool_calls");
    await follower.until(({ status }) => status === "requires_action");
    const withPendingCalls = (await readSnapshot(id)).map(({ type }) => type);
    expect(withPendingCalls.slice(-4)).toEqual(["queue_update", "status", "action_required", "preview_reset"]);
    await world.owner.post(`${CHATS}/${id}/tool-results`, { results: [{ tool_call_id: "c", output: null }] });
    (await world.models.next()).finish();
    (await world.models.next()).finish();
    await waitForTurnEnd(id);
  });
});

testInProcess("[CH-14] retries a model that is silent for ten minutes, as a stream_silence_timeout", async () => {
  const clock = new ManualClock();
  await using world = await openChatWorld({ clock });
  const { id } = await createChat(world);
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).say("so");
  await follower.until(({ preview }) => preview === "so");
  clock.advance(600_001);
  await follower.until(({ events }) => events.some(({ type }) => type === "retry"));
  expect(follower.events.find(({ type }) => type === "retry")).toMatchObject({
    retry: { attempt: 1, kind: "stream_silence_timeout" },
  });
});

/** Reads events up to and including the batch with the first match, in order. */
const readEventsUntil = async (
  socket: { json<T>(): Promise<T> },
  matches: (event: ChatEvent) => boolean,
): Promise<ChatEvent[]> => {
  const events: ChatEvent[] = [];
  while (!events.some(matches)) events.push(...(await socket.json<ChatEvent[]>()));
  return events;
};
