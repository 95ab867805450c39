// The specification's chat tables as a caller meets them: which members an answer or event has, which are absent, and what a request may
// say. SPEC.md beside it names the test of every row; here are those that no other story comes by. One server for all of them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Chat, ChatMessage, CreatedMessage, MessagePage, Prompts } from "#schema/chat.ts";
import type { ChatEvent, WatchEvent } from "#schema/chat-event.ts";
import type { Generic } from "#schema/generic.ts";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, Follower, openChatWorld, said, sendMessage } from "#test/support/chats.ts";
import { describeInside } from "#test/support/inside.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";

const CHATS = "/api/v2/chats";
const keys = (one: object): string[] => Object.keys(one).sort();
const ALWAYS = [
  ...["archived", "children", "client_type", "created_at", "files", "has_unread", "id", "labels"],
  ...["last_model_config_id", "last_turn_summary", "mcp_server_ids", "organization_id", "owner_id", "owner_name"],
  ...["owner_username", "pin_order", "queued_for_capacity", "shared", "status", "title", "updated_at", "warnings"],
];
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);

describeInside("the specification", () => {
  let world: ChatWorld;
  beforeAll(async () => {
    world = await openChatWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const read = (id: string) => world.owner.get<Chat>(`${CHATS}/${id}`);
  const over = async (id: string): Promise<void> => {
    using follower = await Follower.open(world.owner, id);
    await follower.until(({ status }) => status === "waiting");
  };
  const answer = async (method: string, path: string, body?: unknown): Promise<[number, Generic]> => {
    const response = await world.owner.fetch(method, path, body);
    const text = await response.text();
    return [response.status, (text === "" ? {} : JSON.parse(text)) as Generic];
  };

  test("[CH-43] a chat has the specification's members, in every answer and event; what it does not have yet is absent", async () => {
    using watch = await world.owner.socket(`${CHATS}/watch`);
    const made = await createChat(world);
    expect(keys(made)).toEqual(ALWAYS);
    expect(made).toMatchObject({
      ...{ archived: false, has_unread: false, shared: false, queued_for_capacity: false, pin_order: 0 },
      ...{
        children: [],
        files: [],
        labels: {},
        mcp_server_ids: [],
        warnings: [],
        client_type: "api",
        status: "running",
      },
      ...{ last_turn_summary: "", owner_id: world.user_id, organization_id: world.organization_id },
      ...{ created_at: TIME, updated_at: TIME },
    });
    const created = await watch.json<WatchEvent>();
    expect([keys(created), created.kind, keys(created.chat)]).toEqual([["chat", "kind"], "created", ALWAYS]);
    const call = await world.models.next();
    const [listed] = await world.owner.get<Chat[]>(CHATS);
    expect([keys(listed as Chat), keys(await read(made.id))]).toEqual([ALWAYS, ALWAYS]);
    call.fail("rate_limit", { provider: "acme", status_code: 429, retryable: false });
    using follower = await Follower.open(world.owner, made.id);
    await follower.until(({ events }) => events.some(({ type }) => type === "error"));
    const failed = await read(made.id);
    expect(keys(failed)).toEqual([...ALWAYS, "last_error"].sort());
    expect(failed.last_error).toEqual({
      ...{ kind: "rate_limit", message: expect.any(String), detail: "The script says so." },
      ...{ provider: "acme", retryable: false, status_code: 429 },
    });
  });

  test("[CH-17] [CH-43] a chat that waits for a slot says so where it alone is read, never in a list", async () => {
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
    for (const { id } of chats) await over(id);
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
      content: said("go") as never,
      created_by: world.user_id,
      model_config_id,
    });
    expect(assistant).toEqual({
      ...{ ...head, role: "assistant", model_config_id },
      content: [
        { type: "reasoning", text: "hm", created_at: TIME, completed_at: TIME },
        { type: "text", text: "so" },
        {
          ...{ type: "tool-call", tool_call_id: "c", tool_name: "execute", created_at: TIME },
          args: { command: "cd /tmp && /usr/bin/git -C x status | wc" },
          parsed_commands: [["cd", "/tmp"], ["git", "x"], ["wc"]],
        },
      ],
      usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7, context_limit: 100 },
    });
    const result = {
      ...{ type: "tool-result", tool_call_id: "c", tool_name: "execute", created_at: TIME, is_error: true },
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
    const begun = { role: "assistant", type: "tool-call", tool_call_id: "c", tool_name: "execute", args_delta: "{}" };
    expect(parts).toContainEqual(begun as never);
    expect(parts).toContainEqual({ role: "assistant", ...assistant.content[2] } as never);
    for (const event of follower.events) expect(event.chat_id).toBe(id);
  });

  test("[CH-45] ids that may be missing are {uuid, valid} in parts, plain for clients under the upstream names", async () => {
    const headers = { "content-type": "text/plain", "content-disposition": 'attachment; filename="n.txt"' };
    const files = `${CHATS}/files?organization=${world.organization_id}`;
    const file = (await (await world.owner.fetch("POST", files, "notes", { headers })).json()) as { id: string };
    const { id } = await createChat(world, "", { content: [{ type: "file", file_id: file.id }] });
    const call = await world.models.next();
    const shown = { type: "file", media_type: "text/plain", name: "n.txt" } as const;
    const page = await world.owner.get<MessagePage>(`${CHATS}/${id}/messages`);
    expect(page.messages[0]?.content).toEqual([{ ...shown, file_id: { uuid: file.id, valid: true } }]);
    const upstream = { headers: { "Coder-Session-Token": world.owner.token as string } };
    const nobody = world.owner.as(undefined);
    const plain = await nobody.get<MessagePage>(`${CHATS}/${id}/messages`, upstream);
    expect(plain.messages[0]?.content).toEqual([{ ...shown, file_id: file.id }]);
    const sent = await sendMessage(world, id, "", { content: [{ type: "file", file_id: file.id }] });
    expect(sent.queued_message?.content).toEqual([{ ...shown, file_id: { uuid: file.id, valid: true } }]);
    const socket = await nobody.socket(`${CHATS}/${id}/stream`, upstream);
    const [first, queue] = (await frames(socket, ({ type }) => type === "queue_update")) as [ChatEvent, ChatEvent];
    expect(first).toMatchObject({ message: { content: [{ file_id: file.id }] } });
    expect(queue).toMatchObject({ queued_messages: [{ content: [{ file_id: file.id }] }] });
    socket.close();
    call.finish();
    (await world.models.next()).finish();
    await over(id);
  });

  test("[CH-20] the snapshot's order where there is a queue and a retry, an error, or awaited calls; a retry has all its members", async () => {
    const snapshot = async (id: string) => {
      const socket = await world.owner.socket(`${CHATS}/${id}/stream`);
      const events = await frames(socket, ({ type }) => type === "preview_reset");
      socket.close();
      return events;
    };
    const { id } = await createChat(world, "one", { unsafe_dynamic_tools: [{ name: "ask", input_schema: {} }] });
    using follower = await Follower.open(world.owner, id);
    const wait = { provider: "acme", status_code: 529, retry_after_ms: 3_000_000 };
    (await world.models.next()).fail("overloaded", wait);
    await sendMessage(world, id, "two");
    await follower.until(({ events }) => events.some(({ type }) => type === "retry"));
    const retried = await snapshot(id);
    expect(retried.map(({ type }) => type)).toEqual(["message", "queue_update", "status", "retry", "preview_reset"]);
    expect(retried.find(({ type }) => type === "retry")).toEqual({
      ...{ type: "retry", chat_id: id },
      retry: {
        ...{ attempt: 1, delay_ms: 3_000_000, error: expect.any(String), kind: "overloaded" },
        ...{ provider: "acme", retrying_at: TIME as unknown as string, status_code: 529 },
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
    const asked = (await snapshot(id)).map(({ type }) => type);
    expect(asked.slice(-4)).toEqual(["queue_update", "status", "action_required", "preview_reset"]);
    await world.owner.post(`${CHATS}/${id}/tool-results`, { results: [{ tool_call_id: "c", output: null }] });
    (await world.models.next()).finish();
    (await world.models.next()).finish();
    await over(id);
  });

  test("[CH-29] [CH-46] prompts, streams, lists and by-workspace refuse what the specification does not allow before anything is begun", async () => {
    const { id } = await createChat(world, "", {
      content: [
        { type: " TEXT ", text: " one " },
        { type: "file-reference", file_name: "a.ts", start_line: 3, end_line: 1, content: "x" },
        { type: "text", text: "two" },
      ],
    });
    (await world.models.next()).finish();
    await over(id);
    const path = `${CHATS}/${id}`;
    for (const limit of ["", "?limit=0", "?limit=1", "?limit=2000"]) {
      const { prompts } = await world.owner.get<Prompts>(`${path}/prompts${limit}`);
      expect(prompts).toEqual([{ id: expect.any(Number), text: "onetwo" }]);
    }
    const search = (q: string) => `${CHATS}?q=${encodeURIComponent(q)}`;
    const lost = crypto.randomUUID();
    for (const [status, at] of [
      ...["-1", "2001", "x", "1.5"].map((limit) => [400, `${path}/prompts?limit=${limit}`] as const),
      ...["x", "-1", "1.5"].map((after) => [400, `${path}/stream?after_id=${after}`] as const),
      ...[[400, `${CHATS}/word/stream`] as const, [404, `${CHATS}/${lost}/stream`] as const],
      ...["title", "pr_title", "pr"].map((key) => [400, search(`search:a ${key}:1`)] as const),
      ...["word", "search:", "pr:0", ":a", "title:a:b", "archived:maybe"].map((q) => [400, search(q)] as const),
      ...[`${CHATS}/by-workspace?workspace_ids=word`, `${CHATS}?label=a`, `${CHATS}?label=a:`].map(
        (one) => [400, one] as const,
      ),
      [400, `${CHATS}/by-workspace?workspace_ids=${Array.from({ length: 26 }, () => lost).join()}`] as const,
    ]) {
      const [found, { message }] = await answer("GET", at);
      expect([at, found, typeof message]).toEqual([at, status, "string"]);
      if (at.includes("?q=")) expect(message).toBe("Invalid chat search query.");
    }
    expect(await answer("GET", search('search:"?!"'))).toEqual([200, [] as never]);
    expect(await answer("GET", search("TITLE:onetwo"))).toMatchObject([200, []]);
    for (const name of ["v2/chats/{}/stream/git", "experimental/chats/{}/stream/desktop"]) {
      const [refused, { message }] = await answer("GET", `/api/${name.replace("{}", id)}`);
      expect([name, refused, message]).toEqual([name, 400, "The chat has no workspace."]);
      expect((await answer("GET", `/api/${name.replace("{}", lost)}`))[0]).toBe(404);
    }
    expect(await answer("GET", `${CHATS}/by-workspace`)).toEqual([200, {} as never]);
    expect(await answer("GET", `${CHATS}/by-workspace?workspace_ids=${lost}`)).toEqual([200, {} as never]);
  });

  test("[CH-46] what is too large is 413 in the generic body; a refused message, edit or upload changes nothing", async () => {
    const { id } = await createChat(world, "one");
    const call = await world.models.next();
    const path = `${CHATS}/${id}`;
    const tooLarge = (limit: number) => ({
      message: "Request body too large.",
      detail: `Maximum request body size is ${limit} bytes.`,
    });
    const content = said("x".repeat(262_144));
    const { organization_id } = world;
    expect(await answer("POST", CHATS, { organization_id, content })).toEqual([413, tooLarge(262_144)]);
    const results = [{ tool_call_id: "c", output: "x".repeat(262_144) }];
    expect(await answer("POST", `${path}/tool-results`, { results })).toEqual([413, tooLarge(262_144)]);
    const headers = { "content-type": "text/plain", "content-disposition": 'attachment; filename="n.txt"' };
    const upload = async (query: string, bytes: string, more: Record<string, string> = headers) => {
      const response = await world.owner.fetch("POST", `${CHATS}/files${query}`, bytes, { headers: more });
      return [response.status, await response.json()] as [number, Generic];
    };
    const organization = `?organization=${organization_id}`;
    expect(await upload(organization, "x".repeat(10_485_761))).toEqual([413, tooLarge(10_485_760)]);
    expect((await upload("", "x"))[0]).toBe(400);
    // Uploads are counted for each user and minute; what is not begun is counted as well.
    const other = world.owner.as((await seedUser(world.server, { organization_id })).token);
    let last = 400;
    let tries = 0;
    for (; last === 400 && tries < 300; tries++) {
      const response = await other.fetch("POST", `${CHATS}/files${organization}`, "", { headers });
      await response.body?.cancel();
      last = response.status;
    }
    expect([last, tries > 120]).toEqual([429, true]);
    expect((await upload(organization, "x", { "content-type": "text/plain" }))[0]).toBe(400);
    const before = await world.owner.get<MessagePage>(`${path}/messages`);
    const first = before.messages[0]?.id;
    for (const bad of [
      {},
      { content: [] },
      { content: said(" ") },
      { content: "x" },
      { content: [{ type: "video" }] },
    ]) {
      expect((await answer("POST", `${path}/messages`, bad))[0]).toBe(400);
      expect((await answer("PATCH", `${path}/messages/${first}`, bad))[0]).toBe(400);
      expect((await answer("POST", CHATS, { organization_id, ...bad }))[0]).toBe(400);
    }
    for (const wish of [{ plan_mode: "x" }, { reasoning_effort: "x" }, { model_config_id: crypto.randomUUID() }]) {
      expect((await answer("POST", `${path}/messages`, { content: said("a"), ...wish }))[0]).toBe(400);
    }
    expect((await answer("POST", CHATS, { content: said("a") }))[0]).toBe(400);
    expect((await answer("DELETE", `${path}/queue/zero`))[0]).toBe(400);
    expect(await world.owner.get<MessagePage>(`${path}/messages`)).toEqual(before);
    const queued = await world.owner.post<CreatedMessage>(`${path}/messages`, { content: said("two") });
    expect(keys(queued)).toEqual(["messages", "queued", "queued_message", "warnings"]);
    const waits = ["chat_id", "content", "created_at", "id"];
    expect(keys(queued.queued_message ?? {}).filter((key) => key !== "model_config_id")).toEqual(waits);
    const removed = await world.owner.fetch("DELETE", `${path}/queue/${queued.queued_message?.id}`);
    expect([removed.status, await removed.text()]).toEqual([204, ""]);
    const edited = await world.owner.patch<object>(`${path}/messages/${first}`, { content: said("b") });
    expect(keys(edited)).toEqual(["deleted_message_ids", "message", "messages", "warnings"]);
    call.finish();
    (await world.models.next()).finish();
    await over(id);
    const sent = await sendMessage(world, id, "c", { busy_behavior: "queue" });
    expect([keys(sent), sent.queued]).toEqual([["message", "messages", "queued", "warnings"], false]);
    const stopped = await world.owner.post<Chat>(`${path}/interrupt`);
    expect([stopped.id, stopped.status]).toEqual([id, "interrupting"]);
    (await world.models.next()).finish();
    await over(id);
  });

  test("[CC-1] every setting answers the specification's members, and takes them with its status", async () => {
    const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
    for (const [name, members, body, status] of [
      ["auto-archive-days", ["auto_archive_days"], { auto_archive_days: 1 }, 204],
      ["debug-logging", ["allow_users", "forced_by_deployment"], { allow_users: true }, 204],
      ["debug-retention-days", ["debug_retention_days"], { debug_retention_days: 1 }, 204],
      ["personal-model-overrides", ["allow_users"], { allow_users: true }, 204],
      ["plan-mode-instructions", ["plan_mode_instructions"], { plan_mode_instructions: "x" }, 204],
      [
        "system-prompt",
        ["default_system_prompt", "include_default_system_prompt", "system_prompt"],
        ...([{ include_default_system_prompt: false, system_prompt: "x" }, 204] as const),
      ],
      [
        "user-debug-logging",
        ["debug_logging_enabled", "forced_by_deployment", "user_toggle_allowed"],
        ...([{ debug_logging_enabled: true }, 204] as const),
      ],
      ["user-prompt", ["custom_prompt"], { custom_prompt: "x" }, 200],
      ["workspace-ttl", ["workspace_ttl_ms"], { workspace_ttl_ms: 60_000 }, 204],
    ] as const) {
      const path = `${CHATS}/config/${name}`;
      const put = await admin.fetch("PUT", path, body);
      const told = await put.text();
      expect([name, put.status, told === "" ? 204 : JSON.parse(told)]).toEqual([
        name,
        status,
        status === 204 ? 204 : body,
      ]);
      const now = await admin.get<object>(path);
      expect([name, keys(now)]).toEqual([name, [...members]]);
      expect(now).toMatchObject(body);
    }
  });
});

/** The events up to the first that fits, in the order they came. */
const frames = async (socket: { json<T>(): Promise<T> }, fits: (event: ChatEvent) => boolean): Promise<ChatEvent[]> => {
  const events: ChatEvent[] = [];
  while (!events.some(fits)) events.push(...(await socket.json<ChatEvent[]>()));
  return events;
};
