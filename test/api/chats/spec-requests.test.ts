// The specification's requests to chats. Invalid ones get the specified status and a generic body, and change nothing. SPEC.md names the
// test of every row; this file covers the rows that no other test covers, with one server.
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
import { describeInProcess } from "#test/support/in-process.ts";
import { SCRIPTED } from "#test/support/models/scripted-models.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";

const CHATS = "/api/v2/chats";
const listKeys = (value: object): string[] => Object.keys(value).sort();
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);

describeInProcess("the specification", () => {
  let world: ChatWorld;
  beforeAll(async () => {
    world = await openChatWorld();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const waitForTurnEnd = async (id: string): Promise<void> => {
    using follower = await Follower.open(world.owner, id);
    await follower.until(({ status }) => status === "waiting");
  };
  const request = async (method: string, path: string, body?: unknown): Promise<[number, Generic]> => {
    const response = await world.owner.fetch(method, path, body);
    const text = await response.text();
    return [response.status, (text === "" ? {} : JSON.parse(text)) as Generic];
  };

  test("[CH-29] [CH-46] prompts, streams, lists and by-workspace refuse requests outside the specification", async () => {
    const { id } = await createChat(world, "", {
      content: [
        { type: " TEXT ", text: " one " },
        { type: "file-reference", file_name: "a.ts", start_line: 3, end_line: 1, content: "x" },
        { type: "text", text: "two" },
      ],
    });
    (await world.models.next()).finish();
    await waitForTurnEnd(id);
    const chatPath = `${CHATS}/${id}`;
    for (const limit of ["", "?limit=0", "?limit=1", "?limit=2000"]) {
      const { prompts } = await world.owner.get<Prompts>(`${chatPath}/prompts${limit}`);
      expect(prompts).toEqual([{ id: expect.any(Number), text: "onetwo" }]);
    }
    // A message without text is not a prompt and does not replace one.
    const headers = { "content-type": "text/plain", "content-disposition": 'attachment; filename="n.txt"' };
    const files = `${CHATS}/files?organization=${world.organization_id}`;
    const file = (await (await world.owner.fetch("POST", files, "notes", { headers })).json()) as { id: string };
    await sendMessage(world, id, "", { content: [{ type: "file", file_id: file.id }] });
    (await world.models.next()).finish();
    await waitForTurnEnd(id);
    expect((await world.owner.get<Prompts>(`${chatPath}/prompts?limit=1`)).prompts).toMatchObject([{ text: "onetwo" }]);
    const toSearchPath = (q: string) => `${CHATS}?q=${encodeURIComponent(q)}`;
    const unknownId = crypto.randomUUID();
    for (const [expectedStatus, path] of [
      ...["-1", "2001", "x", "1.5"].map((limit) => [400, `${chatPath}/prompts?limit=${limit}`] as const),
      ...["x", "-1", "1.5"].map((afterId) => [400, `${chatPath}/stream?after_id=${afterId}`] as const),
      ...[[400, `${CHATS}/word/stream`] as const, [404, `${CHATS}/${unknownId}/stream`] as const],
      ...["title", "pr_title", "pr"].map((key) => [400, toSearchPath(`search:a ${key}:1`)] as const),
      ...["word", "search:", "pr:0", ":a", "title:a:b", "archived:maybe"].map((q) => [400, toSearchPath(q)] as const),
      ...[`${CHATS}/by-workspace?workspace_ids=word`, `${CHATS}?label=a`, `${CHATS}?label=a:`].map(
        (path) => [400, path] as const,
      ),
      [400, `${CHATS}/by-workspace?workspace_ids=${Array.from({ length: 26 }, () => unknownId).join()}`] as const,
    ]) {
      const [status, { message }] = await request("GET", path);
      expect([path, status, typeof message]).toEqual([path, expectedStatus, "string"]);
      if (path.includes("?q=")) expect(message).toBe("Invalid chat search query.");
    }
    expect(await request("GET", toSearchPath('search:"?!"'))).toEqual([200, [] as never]);
    expect(await request("GET", toSearchPath("TITLE:onetwo"))).toMatchObject([200, []]);
    for (const query of ["", "?limit=0", "?limit=100000", "?q=%20"]) {
      expect(await request("GET", `${CHATS}${query}`)).toMatchObject([200, [{ id }]]);
    }
    expect(await request("GET", `${CHATS}?after_id=${id}`)).toEqual([200, [] as never]);
    for (const invalid of ["limit=-1", "limit=x", "offset=-1", "after_id=word"]) {
      expect([invalid, (await request("GET", `${CHATS}?${invalid}`))[0]]).toEqual([invalid, 400]);
    }
    for (const name of ["v2/chats/{}/stream/git", "experimental/chats/{}/stream/desktop"]) {
      const [status, { message }] = await request("GET", `/api/${name.replace("{}", id)}`);
      expect([name, status, message]).toEqual([name, 400, "The chat has no workspace."]);
      expect((await request("GET", `/api/${name.replace("{}", unknownId)}`))[0]).toBe(404);
    }
    expect(await request("GET", `${CHATS}/by-workspace`)).toEqual([200, {} as never]);
    expect(await request("GET", `${CHATS}/by-workspace?workspace_ids=${unknownId}`)).toEqual([200, {} as never]);
  });

  test("[CH-46] an oversized request gets 413 with the generic body; a refused message, edit or upload changes nothing", async () => {
    const { id } = await createChat(world, "one");
    const call = await world.models.next();
    const path = `${CHATS}/${id}`;
    const toTooLarge = (limit: number) => ({
      message: "Request body too large.",
      detail: `Maximum request body size is ${limit} bytes.`,
    });
    const content = toTextContent("x".repeat(262_144));
    const { organization_id } = world;
    expect(await request("POST", CHATS, { organization_id, content })).toEqual([413, toTooLarge(262_144)]);
    const results = [{ tool_call_id: "c", output: "x".repeat(262_144) }];
    expect(await request("POST", `${path}/tool-results`, { results })).toEqual([413, toTooLarge(262_144)]);
    const headers = { "content-type": "text/plain", "content-disposition": 'attachment; filename="n.txt"' };
    const upload = async (query: string, bytes: string, uploadHeaders: Record<string, string> = headers) => {
      const response = await world.owner.fetch("POST", `${CHATS}/files${query}`, bytes, { headers: uploadHeaders });
      return [response.status, await response.json()] as [number, Generic];
    };
    const organization = `?organization=${organization_id}`;
    expect(await upload(organization, "x".repeat(10_485_761))).toEqual([413, toTooLarge(10_485_760)]);
    expect((await upload("", "x"))[0]).toBe(400);
    // Uploads are counted per user and minute, including rejected ones.
    const otherUser = world.owner.withToken((await seedUser(world.server, { organization_id })).token);
    let status = 400;
    let attempts = 0;
    for (; status === 400 && attempts < 300; attempts++) {
      const response = await otherUser.fetch("POST", `${CHATS}/files${organization}`, "", { headers });
      await response.body?.cancel();
      status = response.status;
    }
    expect([status, attempts > 120]).toEqual([429, true]);
    expect((await upload(organization, "x", { "content-type": "text/plain" }))[0]).toBe(400);
    const pageBefore = await world.owner.get<MessagePage>(`${path}/messages`);
    const firstId = pageBefore.messages[0]?.id;
    for (const invalid of [
      {},
      { content: [] },
      { content: toTextContent(" ") },
      { content: "x" },
      { content: [{ type: "video" }] },
    ]) {
      expect((await request("POST", `${path}/messages`, invalid))[0]).toBe(400);
      expect((await request("PATCH", `${path}/messages/${firstId}`, invalid))[0]).toBe(400);
      expect((await request("POST", CHATS, { organization_id, ...invalid }))[0]).toBe(400);
    }
    for (const fields of [{ plan_mode: "x" }, { reasoning_effort: "x" }, { model_config_id: crypto.randomUUID() }]) {
      expect((await request("POST", `${path}/messages`, { content: toTextContent("a"), ...fields }))[0]).toBe(400);
    }
    expect((await request("POST", CHATS, { content: toTextContent("a") }))[0]).toBe(400);
    expect((await request("DELETE", `${path}/queue/zero`))[0]).toBe(400);
    expect(await world.owner.get<MessagePage>(`${path}/messages`)).toEqual(pageBefore);
    const queued = await sendMessage(world, id, "two", { model_config_id: SCRIPTED.id });
    expect(listKeys(queued)).toEqual(["messages", "queued", "queued_message", "warnings"]);
    expect(queued.queued_message).toEqual({
      id: expect.any(Number),
      chat_id: id,
      model_config_id: SCRIPTED.id,
      created_at: TIME,
      content: toTextContent("two") as never,
    });
    const removed = await world.owner.fetch("DELETE", `${path}/queue/${queued.queued_message?.id}`);
    expect([removed.status, await removed.text()]).toEqual([204, ""]);
    const edited = await world.owner.patch<object>(`${path}/messages/${firstId}`, { content: toTextContent("b") });
    expect(listKeys(edited)).toEqual(["deleted_message_ids", "message", "messages", "warnings"]);
    call.finish();
    (await world.models.next()).finish();
    await waitForTurnEnd(id);
    const sent = await sendMessage(world, id, "c", { busy_behavior: "queue" });
    expect([listKeys(sent), sent.queued]).toEqual([["message", "messages", "queued", "warnings"], false]);
    // A turn interrupted before its model call never makes the call.
    const interruptedCall = await world.models.next();
    const interrupted = await world.owner.post<Chat>(`${path}/interrupt`);
    // The model has sent nothing yet, so the chat may already be idle.
    expect([interrupted.id, ["interrupting", "waiting"].includes(interrupted.status)]).toEqual([id, true]);
    interruptedCall.finish();
    await waitForTurnEnd(id);
  });

  test("[CC-1] every setting returns the specification's members and accepts them with the specified status", async () => {
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
      const answer = text === "" ? undefined : JSON.parse(text);
      expect([name, put.status, answer]).toEqual([name, status, status === 204 ? undefined : body]);
      const setting = await admin.get<object>(path);
      expect([name, listKeys(setting)]).toEqual([name, [...members]]);
      expect(setting).toMatchObject(body);
    }
  });
});
