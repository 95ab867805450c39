// The specification's chat tables from a caller's view: which members a response or event has, which are absent, in which order. SPEC.md
// next to it names the test of every row; these are the ones that no other story covers. One server for all of them.
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
import { describeInside, testInside } from "#test/support/inside.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const CHATS = "/api/v2/chats";
const keys = (one: object): string[] => Object.keys(one).sort();
const ALWAYS = [
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

describeInside("the specification", () => {
  let world: ChatWorld;
  beforeAll(async () => {
    world = await openChatWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const read = (id: string) => world.owner.get<Chat>(`${CHATS}/${id}`);
  const awaitTurn = async (id: string): Promise<void> => {
    using follower = await Follower.open(world.owner, id);
    await follower.until(({ status }) => status === "waiting");
  };

  test("[CH-43] a chat has the specification's members in every response and event; missing values are absent", async () => {
    using watch = await world.owner.socket(`${CHATS}/watch`);
    const built = await createChat(world);
    expect(keys(built)).toEqual(ALWAYS);
    expect(built).toMatchObject({
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
    const created = await watch.json<WatchEvent>();
    expect([keys(created), created.kind, keys(created.chat)]).toEqual([["chat", "kind"], "created", ALWAYS]);
    const call = await world.models.next();
    const [listed] = await world.owner.get<Chat[]>(CHATS);
    expect([keys(listed as Chat), keys(await read(built.id))]).toEqual([ALWAYS, ALWAYS]);
    call.fail("rate_limit", { provider: "acme", status_code: 429, retryable: false });
    using follower = await Follower.open(world.owner, built.id);
    await follower.until(({ events }) => events.some(({ type }) => type === "error"));
    const failed = await read(built.id);
    expect(keys(failed)).toEqual([...ALWAYS, "last_error"].sort());
    expect(failed.last_error).toEqual({
      kind: "rate_limit",
      message: expect.any(String),
      detail: "A scripted failure.",
      provider: "acme",
      retryable: false,
      status_code: 429,
    });
  });

  test("[CH-17] [CH-43] a chat that waits for a slot says so when it is read alone, never in a list", async () => {
    const chats: Chat[] = [];
    for (let index = 0; index < 6; index++) chats.push(await createChat(world, `slot ${index}`));
    const calls = [];
    for (let index = 0; index < 5; index++) calls.push(await world.models.next());
    const waiting = (await Promise.all(chats.map(({ id }) => read(id)))).filter((one) => one.queued_for_capacity);
    expect(waiting.map(({ title, status }) => [title, status])).toEqual([["slot 5", "running"]]);
    const listed = await world.owner.get<Chat[]>(CHATS);
    expect(listed.some((one) => one.queued_for_capacity)).toBe(false);
    for (const call of calls) call.finish();
    (await world.models.next()).finish();
    for (const { id } of chats) await awaitTurn(id);
    expect((await read(chats[5]?.id as string)).queued_for_capacity).toBe(false);
  });

  test("[CH-44] messages and their parts have the specification's members, live and stored: times of reasoning, calls and results, parsed commands, tokens", async () => {
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
    const [user, assistant, tool, last] = messages.reverse() as [ChatMessage, ChatMessage, ChatMessage, ChatMessage];
    expect([...follower.messages.values()]).toEqual(messages);
    const head = { id: expect.any(Number), chat_id: id, created_at: TIME };
    const model_config_id = expect.any(String);
    expect(user).toEqual({
      ...head,
      role: "user",
      content: toTextContent("go") as never,
      created_by: world.user_id,
      model_config_id,
    });
    expect(assistant).toEqual({
      ...head,
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
    expect(tool).toEqual({ ...head, role: "tool", content: [result] as never });
    expect(last.content).toEqual([{ type: "source", source_id: "s", url: "http://example.com/", title: "T" }]);
    const live = follower.events.flatMap((event) => (event.type === "message_part" ? [event.message_part] : []));
    for (const part of live) {
      expect(keys(part)).toEqual(["generation_attempt", "history_version", "part", "role", "seq"]);
    }
    const parts = live.map(({ role, part }) => ({ role, ...part }));
    expect(parts).toContainEqual({ role: "assistant", type: "reasoning", text: "hm", created_at: TIME } as never);
    expect(parts).toContainEqual({ role: "assistant", type: "reasoning", text: "", completed_at: TIME } as never);
    const started = { role: "assistant", type: "tool-call", tool_call_id: "c", tool_name: "execute", args_delta: "{}" };
    expect(parts).toContainEqual(started as never);
    expect(parts).toContainEqual({ role: "assistant", ...assistant.content[2] } as never);
    for (const event of follower.events) expect(event.chat_id).toBe(id);
  });

  test("[CH-45] IDs of optional parts are {uuid, valid}, and plain for clients under the upstream names", async () => {
    const headers = { "content-type": "text/plain", "content-disposition": 'attachment; filename="n.txt"' };
    const files = `${CHATS}/files?organization=${world.organization_id}`;
    const file = (await (await world.owner.fetch("POST", files, "notes", { headers })).json()) as { id: string };
    const { id } = await createChat(world, "", { content: [{ type: "file", file_id: file.id }] });
    const call = await world.models.next();
    const shown = { type: "file", media_type: "text/plain", name: "n.txt" } as const;
    const page = await world.owner.get<MessagePage>(`${CHATS}/${id}/messages`);
    expect(page.messages[0]?.content).toEqual([{ ...shown, file_id: { uuid: file.id, valid: true } }]);
    const upstream = { headers: { "Coder-Session-Token": world.owner.token as string } };
    const anonymous = world.owner.withToken(undefined);
    const plain = await anonymous.get<MessagePage>(`${CHATS}/${id}/messages`, upstream);
    expect(plain.messages[0]?.content).toEqual([{ ...shown, file_id: file.id }]);
    const sent = await sendMessage(world, id, "", { content: [{ type: "file", file_id: file.id }] });
    expect(sent.queued_message?.content).toEqual([{ ...shown, file_id: { uuid: file.id, valid: true } }]);
    const socket = await anonymous.socket(`${CHATS}/${id}/stream`, upstream);
    const [first, queue] = (await frames(socket, ({ type }) => type === "queue_update")) as [ChatEvent, ChatEvent];
    expect(first).toMatchObject({ message: { content: [{ file_id: file.id }] } });
    expect(queue).toMatchObject({ queued_messages: [{ content: [{ file_id: file.id }] }] });
    socket.close();
    call.finish();
    (await world.models.next()).finish();
    await awaitTurn(id);
  });

  test("[CH-20] the snapshot's order with a queue and a retry, an error, or awaited calls; a retry has all its members", async () => {
    const snapshot = async (id: string) => {
      const socket = await world.owner.socket(`${CHATS}/${id}/stream`);
      const events = await frames(socket, ({ type }) => type === "preview_reset");
      socket.close();
      return events;
    };
    const { id } = await createChat(world, "one", { unsafe_dynamic_tools: [{ name: "ask", input_schema: {} }] });
    using follower = await Follower.open(world.owner, id);
    const wait = { provider: "acme", status_code: 529, retry_after_ms: 300_000 };
    (await world.models.next()).fail("overloaded", wait);
    await sendMessage(world, id, "two");
    await follower.until(({ events }) => events.some(({ type }) => type === "retry"));
    const retried = await snapshot(id);
    expect(retried.map(({ type }) => type)).toEqual(["message", "queue_update", "status", "retry", "preview_reset"]);
    expect(retried.find(({ type }) => type === "retry")).toEqual({
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
    const failed = (await snapshot(id)).map(({ type }) => type);
    expect(failed).toEqual(["message", "message", "queue_update", "status", "error", "preview_reset"]);
    const sent = await sendMessage(world, id, "four");
    expect([sent.queued, sent.queued_message?.content[0]?.text]).toEqual([true, "four"]);
    (await world.models.next()).callTool("c", "ask").finish("tool_calls");
    await follower.until(({ status }) => status === "requires_action");
    const requested = (await snapshot(id)).map(({ type }) => type);
    expect(requested.slice(-4)).toEqual(["queue_update", "status", "action_required", "preview_reset"]);
    await world.owner.post(`${CHATS}/${id}/tool-results`, { results: [{ tool_call_id: "c", output: null }] });
    (await world.models.next()).finish();
    (await world.models.next()).finish();
    await awaitTurn(id);
  });
});

testInside(
  "[CH-14] a model that is silent for ten minutes is a stream_silence_timeout, and is called again",
  async () => {
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
  },
);

/** Returns the events up to the first match, in order. */
const frames = async (socket: { json<T>(): Promise<T> }, fits: (event: ChatEvent) => boolean): Promise<ChatEvent[]> => {
  const events: ChatEvent[] = [];
  while (!events.some(fits)) events.push(...(await socket.json<ChatEvent[]>()));
  return events;
};
