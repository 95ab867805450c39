// The specification's requests to chats, and what happens to invalid ones: status, generic body, and no change. SPEC.md next to it names
// the test of every row; these are the ones that no other story covers. One server for all of them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Chat, MessagePage, Prompts } from "#schema/chats/chat.ts";
import type { Generic } from "#schema/generic.ts";
import { Client } from "#src/client.ts";
import {
  type ChatWorld,
  createChat,
  Follower,
  openChatWorld,
  sendMessage,
  toTextContent,
} from "#test/support/chats.ts";
import { describeInside } from "#test/support/inside.ts";
import { SCRIPTED } from "#test/support/models/scripted-models.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";

const CHATS = "/api/v2/chats";
const sortedKeys = (one: object): string[] => Object.keys(one).sort();
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);

describeInside("the specification", () => {
  let world: ChatWorld;
  beforeAll(async () => {
    world = await openChatWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const awaitTurn = async (id: string): Promise<void> => {
    using follower = await Follower.open(world.owner, id);
    await follower.until(({ status }) => status === "waiting");
  };
  const answer = async (method: string, path: string, body?: unknown): Promise<[number, Generic]> => {
    const response = await world.owner.fetch(method, path, body);
    const text = await response.text();
    return [response.status, (text === "" ? {} : JSON.parse(text)) as Generic];
  };

  test("[CH-29] [CH-46] prompts, streams, lists and by-workspace refuse requests outside the specification before anything starts", async () => {
    const { id } = await createChat(world, "", {
      content: [
        { type: " TEXT ", text: " one " },
        { type: "file-reference", file_name: "a.ts", start_line: 3, end_line: 1, content: "x" },
        { type: "text", text: "two" },
      ],
    });
    (await world.models.next()).finish();
    await awaitTurn(id);
    const path = `${CHATS}/${id}`;
    for (const limit of ["", "?limit=0", "?limit=1", "?limit=2000"]) {
      const { prompts } = await world.owner.get<Prompts>(`${path}/prompts${limit}`);
      expect(prompts).toEqual([{ id: expect.any(Number), text: "onetwo" }]);
    }
    // A message without words is not a prompt, and does not replace one.
    const headers = { "content-type": "text/plain", "content-disposition": 'attachment; filename="n.txt"' };
    const files = `${CHATS}/files?organization=${world.organization_id}`;
    const file = (await (await world.owner.fetch("POST", files, "notes", { headers })).json()) as { id: string };
    await sendMessage(world, id, "", { content: [{ type: "file", file_id: file.id }] });
    (await world.models.next()).finish();
    await awaitTurn(id);
    expect((await world.owner.get<Prompts>(`${path}/prompts?limit=1`)).prompts).toMatchObject([{ text: "onetwo" }]);
    const search = (q: string) => `${CHATS}?q=${encodeURIComponent(q)}`;
    const unknownId = crypto.randomUUID();
    for (const [status, at] of [
      ...["-1", "2001", "x", "1.5"].map((limit) => [400, `${path}/prompts?limit=${limit}`] as const),
      ...["x", "-1", "1.5"].map((after) => [400, `${path}/stream?after_id=${after}`] as const),
      ...[[400, `${CHATS}/word/stream`] as const, [404, `${CHATS}/${unknownId}/stream`] as const],
      ...["title", "pr_title", "pr"].map((key) => [400, search(`search:a ${key}:1`)] as const),
      ...["word", "search:", "pr:0", ":a", "title:a:b", "archived:maybe"].map((q) => [400, search(q)] as const),
      ...[`${CHATS}/by-workspace?workspace_ids=word`, `${CHATS}?label=a`, `${CHATS}?label=a:`].map(
        (one) => [400, one] as const,
      ),
      [400, `${CHATS}/by-workspace?workspace_ids=${Array.from({ length: 26 }, () => unknownId).join()}`] as const,
    ]) {
      const [found, { message }] = await answer("GET", at);
      expect([at, found, typeof message]).toEqual([at, status, "string"]);
      if (at.includes("?q=")) expect(message).toBe("Invalid chat search query.");
    }
    expect(await answer("GET", search('search:"?!"'))).toEqual([200, [] as never]);
    expect(await answer("GET", search("TITLE:onetwo"))).toMatchObject([200, []]);
    for (const all of ["", "?limit=0", "?limit=100000", "?q=%20"]) {
      expect(await answer("GET", `${CHATS}${all}`)).toMatchObject([200, [{ id }]]);
    }
    expect(await answer("GET", `${CHATS}?after_id=${id}`)).toEqual([200, [] as never]);
    for (const wrong of ["limit=-1", "limit=x", "offset=-1", "after_id=word"]) {
      expect([wrong, (await answer("GET", `${CHATS}?${wrong}`))[0]]).toEqual([wrong, 400]);
    }
    for (const name of ["v2/chats/{}/stream/git", "experimental/chats/{}/stream/desktop"]) {
      const [refused, { message }] = await answer("GET", `/api/${name.replace("{}", id)}`);
      expect([name, refused, message]).toEqual([name, 400, "The chat has no workspace."]);
      expect((await answer("GET", `/api/${name.replace("{}", unknownId)}`))[0]).toBe(404);
    }
    expect(await answer("GET", `${CHATS}/by-workspace`)).toEqual([200, {} as never]);
    expect(await answer("GET", `${CHATS}/by-workspace?workspace_ids=${unknownId}`)).toEqual([200, {} as never]);
  });

  test("[CH-46] an oversized request is 413 with the generic body; a refused message, edit or upload changes nothing", async () => {
    const { id } = await createChat(world, "one");
    const call = await world.models.next();
    const path = `${CHATS}/${id}`;
    const toTooLarge = (limit: number) => ({
      message: "Request body too large.",
      detail: `Maximum request body size is ${limit} bytes.`,
    });
    const content = toTextContent("x".repeat(262_144));
    const { organization_id } = world;
    expect(await answer("POST", CHATS, { organization_id, content })).toEqual([413, toTooLarge(262_144)]);
    const results = [{ tool_call_id: "c", output: "x".repeat(262_144) }];
    expect(await answer("POST", `${path}/tool-results`, { results })).toEqual([413, toTooLarge(262_144)]);
    const headers = { "content-type": "text/plain", "content-disposition": 'attachment; filename="n.txt"' };
    const upload = async (query: string, bytes: string, more: Record<string, string> = headers) => {
      const response = await world.owner.fetch("POST", `${CHATS}/files${query}`, bytes, { headers: more });
      return [response.status, await response.json()] as [number, Generic];
    };
    const organization = `?organization=${organization_id}`;
    expect(await upload(organization, "x".repeat(10_485_761))).toEqual([413, toTooLarge(10_485_760)]);
    expect((await upload("", "x"))[0]).toBe(400);
    // Uploads are counted per user and minute, including rejected ones.
    const other = world.owner.withToken((await seedUser(world.server, { organization_id })).token);
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
      { content: toTextContent(" ") },
      { content: "x" },
      { content: [{ type: "video" }] },
    ]) {
      expect((await answer("POST", `${path}/messages`, bad))[0]).toBe(400);
      expect((await answer("PATCH", `${path}/messages/${first}`, bad))[0]).toBe(400);
      expect((await answer("POST", CHATS, { organization_id, ...bad }))[0]).toBe(400);
    }
    for (const request of [{ plan_mode: "x" }, { reasoning_effort: "x" }, { model_config_id: crypto.randomUUID() }]) {
      expect((await answer("POST", `${path}/messages`, { content: toTextContent("a"), ...request }))[0]).toBe(400);
    }
    expect((await answer("POST", CHATS, { content: toTextContent("a") }))[0]).toBe(400);
    expect((await answer("DELETE", `${path}/queue/zero`))[0]).toBe(400);
    expect(await world.owner.get<MessagePage>(`${path}/messages`)).toEqual(before);
    const queued = await sendMessage(world, id, "two", { model_config_id: SCRIPTED.id });
    expect(sortedKeys(queued)).toEqual(["messages", "queued", "queued_message", "warnings"]);
    expect(queued.queued_message).toEqual({
      id: expect.any(Number),
      chat_id: id,
      model_config_id: SCRIPTED.id,
      created_at: TIME,
      content: toTextContent("two") as never,
    });
    const removed = await world.owner.fetch("DELETE", `${path}/queue/${queued.queued_message?.id}`);
    expect([removed.status, await removed.text()]).toEqual([204, ""]);
    const edited = await world.owner.patch<object>(`${path}/messages/${first}`, { content: toTextContent("b") });
    expect(sortedKeys(edited)).toEqual(["deleted_message_ids", "message", "messages", "warnings"]);
    call.finish();
    (await world.models.next()).finish();
    await awaitTurn(id);
    const sent = await sendMessage(world, id, "c", { busy_behavior: "queue" });
    expect([sortedKeys(sent), sent.queued]).toEqual([["message", "messages", "queued", "warnings"], false]);
    // A turn interrupted before its model call never makes the call.
    const requested = await world.models.next();
    const stopped = await world.owner.post<Chat>(`${path}/interrupt`);
    // Nothing had been said yet: it may already be idle when it is read.
    expect([stopped.id, ["interrupting", "waiting"].includes(stopped.status)]).toEqual([id, true]);
    requested.finish();
    await awaitTurn(id);
  });

  test("[CC-1] every setting returns the specification's members, and accepts them with its status", async () => {
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
      const text = await put.text();
      expect([name, put.status, text === "" ? 204 : JSON.parse(text)]).toEqual([
        name,
        status,
        status === 204 ? 204 : body,
      ]);
      const now = await admin.get<object>(path);
      expect([name, sortedKeys(now)]).toEqual([name, [...members]]);
      expect(now).toMatchObject(body);
    }
  });
});
