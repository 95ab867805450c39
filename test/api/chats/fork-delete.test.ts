// Forks of chats, and permanently deleted chats.
import { expect } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { createChat, Follower, loadHistory, openChatWorld, sendMessage, toTextContent } from "#test/support/chats.ts";
import { testInside } from "#test/support/inside.ts";
import { getContext } from "#test/support/seed.ts";

const openWorld = async () => {
  const world = await openChatWorld();
  const { owner, organization_id } = world;
  const upload = async (name: string, text: string): Promise<string> => {
    const headers = { "content-type": "text/plain", "content-disposition": `attachment; filename="${name}"` };
    const path = `/api/v2/chats/files?organization=${organization_id}`;
    return (
      (await (await owner.fetch("POST", path, new TextEncoder().encode(text), { headers })).json()) as { id: string }
    ).id;
  };
  const count = async (table: string, where = "true"): Promise<number> => {
    const sql = `select count(*) from ${table} where ${where}`;
    return (await getContext(world.server).store.get({ sql, params: [], map: ([value]) => Number(value) })) ?? 0;
  };
  const status = (method: string, path: string, body?: unknown) =>
    owner.fetch(method, path, body).then((one) => one.status);
  return { world, upload, count, status, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
};

testInside(
  "[FK-1][FK-2][FK-3][FK-4] a copy has the history up to a message, its own files, labels, model and rules, is searchable, and is independent of the original",
  async () => {
    await using opened = await openWorld();
    const { world, upload, status } = opened;
    const { owner, models } = world;
    const file_id = await upload("plan.txt", "the plan");
    const permissions = { default: "ask", rules: [] };
    const { id } = await createChat(world, "hello wombat", {
      labels: { team: "red" },
      permissions,
      system_prompt: "Be brief.",
      reasoning_effort: "high",
      content: [...toTextContent("hello wombat"), { type: "file", file_id }],
      unsafe_dynamic_tools: [{ name: "ask", description: "asks", input_schema: { type: "object" } }],
    });
    const path = `/api/v2/chats/${id}`;
    using follower = await Follower.open(owner, id);
    (await models.next()).say("good day").finish();
    await follower.until(({ status, messages }) => status === "waiting" && messages.size === 2);
    await sendMessage(world, id, "go on");
    (await models.next()).callTool("call", "ask", {}).finish("tool_calls");
    await follower.until(({ status }) => status === "requires_action");
    const ids = [...follower.messages.keys()].sort((a, b) => a - b);

    // Forks a chat that waits for results: the fork does not wait.
    const wholeFork = await owner.post<Chat>(`${path}/fork`, { title: "Another way" });
    expect(await loadHistory(owner, wholeFork.id)).toEqual([...(await loadHistory(owner, id)), "tool: tool-result"]);
    expect(wholeFork).toMatchObject({
      title: "Another way",
      status: "waiting",
      has_unread: false,
      shared: false,
      children: [],
    });
    const copy = await owner.post<Chat>(`${path}/fork`, { message_id: ids[1] });
    const source = await owner.get<Chat>(path);
    const { title, labels, organization_id, owner_id, last_model_config_id, last_reasoning_effort } = source;
    expect(copy).toMatchObject({
      title,
      labels,
      organization_id,
      owner_id,
      last_model_config_id,
      last_reasoning_effort,
      permissions: permissions as NonNullable<Chat["permissions"]>,
    });
    expect(copy.files).toMatchObject([{ name: "plan.txt", size_bytes: 8 }]);
    expect(copy.files[0]?.id).not.toBe(file_id);
    expect(await (await owner.fetch("GET", `/api/v2/chats/files/${copy.files[0]?.id}`)).text()).toBe("the plan");
    const found = await owner.get<Chat[]>(`/api/v2/chats?q=${encodeURIComponent("search:wombat")}`);
    expect(found.map((one) => one.id).sort()).toEqual([id, wholeFork.id, copy.id].sort());

    await sendMessage(world, copy.id, "differently");
    const call = await models.next();
    expect(call.request.messages.filter(({ role }) => role !== "system").map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
    ]);
    expect(JSON.stringify(call.request.messages)).toContain("Be brief.");
    expect(call.request.messages.find(({ role }) => role === "user")?.content[1]?.file_id).toBe(copy.files[0]?.id);
    call.say("as you like").finish();
    using other = await Follower.open(owner, copy.id);
    await other.until((one) => one.status === "waiting" && one.messages.size === 4);
    expect((await owner.get<Chat>(path)).status).toBe("requires_action");
    expect(await loadHistory(owner, id)).toHaveLength(4);
    expect(await status("POST", `${path}/fork`, { message_id: 999_999 })).toBe(404);
    expect(await status("POST", `${path}/fork`, { message_id: 0 })).toBe(400);
    expect(await status("POST", `${path}/fork`, { title: " " })).toBe(400);
    const key = { headers: { "idempotency-key": "once" } };
    const twice = await Promise.all(
      [1, 2].map(() => owner.fetch("POST", `${path}/fork`, {}, key).then((one) => one.json() as Promise<Chat>)),
    );
    expect(twice[0]?.id).toBe(twice[1]?.id as string);

    // The original may be deleted: the fork keeps its data.
    await owner.post(`${path}/interrupt`, {});
    (await models.next()).say("stopped").finish();
    await follower.until((one) => one.status === "waiting");
    expect(await status("DELETE", path)).toBe(204);
    expect(await (await owner.fetch("GET", `/api/v2/chats/files/${copy.files[0]?.id}`)).text()).toBe("the plan");
  },
);

testInside(
  "[DL-1][DL-2][DL-3][DL-4] a deleted chat is removed with its history, index and files, its followers are notified, and an active chat is not deleted",
  async () => {
    await using opened = await openWorld();
    const { world, upload, count, status } = opened;
    const { owner, models } = world;
    const file_id = await upload("a.txt", "a");
    const { id } = await createChat(world, "platypus", {
      content: [...toTextContent("platypus"), { type: "file", file_id }],
    });
    const path = `/api/v2/chats/${id}`;
    const call = await models.next();
    expect(await status("DELETE", path)).toBe(409);
    expect((await owner.get<Chat>(path)).archived).toBe(false);
    const follower = await Follower.open(owner, id);
    call.say("monotreme").finish();
    await follower.until((one) => one.status === "waiting" && one.messages.size === 2);
    const keptId = (await createChat(world, "platypus stays")).id;
    expect(await status("DELETE", path)).toBe(204);
    expect((await follower.closed).reason).toContain("access");
    follower.close();
    expect([await status("GET", path), await status("DELETE", path), await status("GET", `${path}/messages`)]).toEqual([
      404, 404, 404,
    ]);
    expect(await status("GET", `/api/v2/chats/files/${file_id}`)).toBe(404);
    expect([await count("chats"), await count("chat_files"), await count("messages")]).toEqual([1, 0, 1]);
    const found = await owner.get<Chat[]>(`/api/v2/chats?q=${encodeURIComponent("search:platypus")}`);
    expect(found.map((one) => one.id)).toEqual([keptId]);
  },
);
