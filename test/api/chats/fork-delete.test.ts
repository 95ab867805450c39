// Forks of chats, and permanently deleted chats.
import { expect } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { createChat, Follower, loadHistory, openChatWorld, sendMessage, toTextContent } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext } from "#test/support/seed.ts";

const openWorld = async () => {
  const world = await openChatWorld();
  const { owner, organization_id } = world;
  const upload = async (name: string, text: string): Promise<string> => {
    const headers = { "content-type": "text/plain", "content-disposition": `attachment; filename="${name}"` };
    const path = `/api/v2/chats/files?organization=${organization_id}`;
    const response = await owner.fetch("POST", path, new TextEncoder().encode(text), { headers });
    return ((await response.json()) as { id: string }).id;
  };
  const countRows = async (table: string, where = "true"): Promise<number> => {
    const sql = `select count(*) from ${table} where ${where}`;
    return (await getContext(world.server).store.get({ sql, params: [], map: ([value]) => Number(value) })) ?? 0;
  };
  const fetchStatus = async (method: string, path: string, body?: unknown) =>
    (await owner.fetch(method, path, body)).status;
  return { world, upload, countRows, fetchStatus, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
};

testInProcess(
  "[FK-1][FK-2][FK-3][FK-4] a fork copies the history up to a message, with files and settings, and is independent of the original",
  async () => {
    await using opened = await openWorld();
    const { world, upload, fetchStatus } = opened;
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

    // The original waits for tool results; its fork does not.
    const fullFork = await owner.post<Chat>(`${path}/fork`, { title: "Another way" });
    expect(await loadHistory(owner, fullFork.id)).toEqual([...(await loadHistory(owner, id)), "tool: tool-result"]);
    expect(fullFork).toMatchObject({
      title: "Another way",
      status: "waiting",
      has_unread: false,
      shared: false,
      children: [],
    });
    const fork = await owner.post<Chat>(`${path}/fork`, { message_id: ids[1] });
    const source = await owner.get<Chat>(path);
    const { title, labels, organization_id, owner_id, last_model_config_id, last_reasoning_effort } = source;
    expect(fork).toMatchObject({
      title,
      labels,
      organization_id,
      owner_id,
      last_model_config_id,
      last_reasoning_effort,
      permissions: permissions as NonNullable<Chat["permissions"]>,
    });
    expect(fork.files).toMatchObject([{ name: "plan.txt", size_bytes: 8 }]);
    expect(fork.files[0]?.id).not.toBe(file_id);
    expect(await (await owner.fetch("GET", `/api/v2/chats/files/${fork.files[0]?.id}`)).text()).toBe("the plan");
    const matches = await owner.get<Chat[]>(`/api/v2/chats?q=${encodeURIComponent("search:wombat")}`);
    expect(matches.map((chat) => chat.id).sort()).toEqual([id, fullFork.id, fork.id].sort());

    await sendMessage(world, fork.id, "differently");
    const call = await models.next();
    expect(call.request.messages.filter(({ role }) => role !== "system").map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
    ]);
    expect(JSON.stringify(call.request.messages)).toContain("Be brief.");
    expect(call.request.messages.find(({ role }) => role === "user")?.content[1]?.file_id).toBe(fork.files[0]?.id);
    call.say("as you like").finish();
    using forkFollower = await Follower.open(owner, fork.id);
    await forkFollower.until(({ status, messages }) => status === "waiting" && messages.size === 4);
    expect((await owner.get<Chat>(path)).status).toBe("requires_action");
    expect(await loadHistory(owner, id)).toHaveLength(4);
    expect(await fetchStatus("POST", `${path}/fork`, { message_id: 999_999 })).toBe(404);
    expect(await fetchStatus("POST", `${path}/fork`, { message_id: 0 })).toBe(400);
    expect(await fetchStatus("POST", `${path}/fork`, { title: " " })).toBe(400);
    const forkOnce = async () => {
      const response = await owner.fetch("POST", `${path}/fork`, {}, { headers: { "idempotency-key": "once" } });
      return ((await response.json()) as Chat).id;
    };
    const [firstId, secondId] = await Promise.all([forkOnce(), forkOnce()]);
    expect(firstId).toBe(secondId);

    // The fork keeps its data after the original is deleted.
    await owner.post(`${path}/interrupt`, {});
    (await models.next()).say("stopped").finish();
    await follower.until(({ status }) => status === "waiting");
    expect(await fetchStatus("DELETE", path)).toBe(204);
    expect(await (await owner.fetch("GET", `/api/v2/chats/files/${fork.files[0]?.id}`)).text()).toBe("the plan");
  },
);

testInProcess(
  "[DL-1][DL-2][DL-3][DL-4] deletes an idle chat with its history, index and files, and disconnects its followers; an active one gets 409",
  async () => {
    await using opened = await openWorld();
    const { world, upload, countRows, fetchStatus } = opened;
    const { owner, models } = world;
    const file_id = await upload("a.txt", "a");
    const { id } = await createChat(world, "platypus", {
      content: [...toTextContent("platypus"), { type: "file", file_id }],
    });
    const path = `/api/v2/chats/${id}`;
    const call = await models.next();
    expect(await fetchStatus("DELETE", path)).toBe(409);
    expect((await owner.get<Chat>(path)).archived).toBe(false);
    const follower = await Follower.open(owner, id);
    call.say("monotreme").finish();
    await follower.until(({ status, messages }) => status === "waiting" && messages.size === 2);
    const otherId = (await createChat(world, "platypus stays")).id;
    expect(await fetchStatus("DELETE", path)).toBe(204);
    expect((await follower.closed).reason).toContain("access");
    follower.close();
    expect(await fetchStatus("GET", path)).toBe(404);
    expect(await fetchStatus("DELETE", path)).toBe(404);
    expect(await fetchStatus("GET", `${path}/messages`)).toBe(404);
    expect(await fetchStatus("GET", `/api/v2/chats/files/${file_id}`)).toBe(404);
    expect([await countRows("chats"), await countRows("chat_files"), await countRows("messages")]).toEqual([1, 0, 1]);
    const matches = await owner.get<Chat[]>(`/api/v2/chats?q=${encodeURIComponent("search:platypus")}`);
    expect(matches.map((chat) => chat.id)).toEqual([otherId]);
  },
);
