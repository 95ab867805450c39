// IDs of calls from model servers that repeat them: every call of a chat has its own, so an answer never reaches another call.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ChatApprovals } from "#schema/chats/chat-approval.ts";
import { Follower, listMessages, openChat, openToolWorld, type ToolWorld } from "./world.ts";

const touch = (name: string) => ["call_0", "execute", { command: `touch ${name}` }] as const;

const listWaitingIds = async ({ owner }: ToolWorld, id: string): Promise<string[]> =>
  (await owner.get<ChatApprovals>(`/api/v2/chats/${id}/permissions`)).calls.map(({ tool_call_id }) => tool_call_id);

test("[CH-55] a late answer approves no other call of a model that repeats its call IDs, not even after an edit", async () => {
  await using world = await openToolWorld();
  const { owner, home, models } = world;
  const { id, call } = await openChat(world, { permission_mode: "ask" });
  const path = `/api/v2/chats/${id}`;
  using follower = await Follower.open(owner, id);
  let waits = 0;
  const untilWaiting = async (): Promise<string[]> => {
    waits += 1;
    await follower.until(({ events }) => events.filter(({ type }) => type === "action_required").length === waits);
    return listWaitingIds(world, id);
  };
  const sendAnswer = async (tool_call_id: string, decision: "allow" | "deny") =>
    (await owner.fetch("POST", `${path}/permissions`, { answers: [{ tool_call_id, decision }] })).status;

  call.callTool(...touch("first")).finish("tool_calls");
  expect(await untilWaiting()).toEqual(["call_0"]);
  expect(await sendAnswer("call_0", "deny")).toBe(204);
  const next = await models.next();
  next.callTool(...touch("second")).finish("tool_calls");
  const [second = ""] = await untilWaiting();
  expect(second).toMatch(/^call_[0-9a-f]{32}$/);
  expect(await sendAnswer("call_0", "allow")).toBe(400);

  const [prompt] = await listMessages(owner, id);
  await owner.patch<unknown>(`${path}/messages/${prompt?.id}`, { content: [{ type: "text", text: "again" }] });
  (await models.next()).callTool(...touch("third")).finish("tool_calls");
  const [third = ""] = await untilWaiting();
  expect(new Set(["call_0", second, third]).size).toBe(3);
  for (const late of ["call_0", second]) expect(await sendAnswer(late, "allow")).toBe(400);
  expect(["first", "second", "third"].filter((name) => existsSync(join(home, name)))).toEqual([]);

  expect(await sendAnswer(third, "allow")).toBe(204);
  const { request } = await models.next();
  expect(existsSync(join(home, "third"))).toBe(true);
  // The model finds the result at its call.
  const ids = request.messages.flatMap(({ content }) => content.flatMap((part) => part.tool_call_id ?? []));
  expect(ids).toEqual([third, third]);
});

test("[CH-55] calls with a NUL and a lone surrogate in their IDs and arguments are stored, and an earlier turn's ID is replaced", async () => {
  await using world = await openToolWorld();
  const { owner, models } = world;
  const { id, call } = await openChat(world);
  const odd = '\0 \ud800 " \\';
  call.callTool(`call ${odd}`, "unknown", { odd, [odd]: [odd] }).callTool("call_0", "unknown", { odd });
  call.finish("tool_calls");
  (await models.next()).callTool("call_0", "unknown", { odd }).callTool("call_1", "unknown").finish("tool_calls");
  (await models.next()).finish();
  using follower = await Follower.open(owner, id);
  await follower.until(({ status }) => status === "waiting");

  await owner.post<unknown>(`/api/v2/chats/${id}/messages`, { content: [{ type: "text", text: "again" }] });
  const repeatingCall = await models.next();
  for (const repeated of [`call ${odd}`, "call_0", "call_1", "call_2"]) repeatingCall.callTool(repeated, "unknown");
  repeatingCall.finish("tool_calls");
  const { request } = await models.next();
  const ids = request.messages.flatMap(({ role, content }) =>
    role === "assistant" ? content.flatMap((part) => part.tool_call_id ?? []) : [],
  );
  expect(new Set(ids).size).toBe(8);
  expect([ids[1], ids[3], ids.at(-1)]).toEqual(["call_0", "call_1", "call_2"]);
  for (const replaced of [ids[2], ...ids.slice(4, 7)]) expect(replaced).toMatch(/^call_[0-9a-f]{32}$/);
});

test("[CH-55] two calls of one answer with the same ID are answered separately, and their live output is too", async () => {
  await using world = await openToolWorld();
  const { owner, home, models } = world;
  const { id, call } = await openChat(world, { permission_mode: "ask" });
  using follower = await Follower.open(owner, id);
  for (const name of ["one", "two"])
    call.push({ type: "tool_call_delta", id: "call_0", name: "execute", delta: "{" }).callTool(...touch(name));
  call.finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  const [one = "", two = ""] = await listWaitingIds(world, id);
  expect(one).toBe("call_0");
  expect(two).not.toBe(one);
  const deltaIds = follower.events.flatMap((event) =>
    event.type === "message_part" && event.message_part.part.args_delta !== undefined
      ? [event.message_part.part.tool_call_id]
      : [],
  );
  expect(deltaIds).toEqual([one, two]);
  const answers = [
    { tool_call_id: one, decision: "deny" },
    { tool_call_id: two, decision: "allow" },
  ];
  await owner.post<unknown>(`/api/v2/chats/${id}/permissions`, { answers });
  await models.next();
  expect(["one", "two"].map((name) => existsSync(join(home, name)))).toEqual([false, true]);
});
