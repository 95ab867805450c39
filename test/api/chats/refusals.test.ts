// Requests that a chat rejects, through the public client: the statuses of the specification that no other test covers.
import { expect, test } from "bun:test";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import {
  type ChatWorld,
  createChat,
  Follower,
  openChatWorld,
  sendMessage,
  toTextContent,
} from "#test/support/chats.ts";

const fetchStatus = async ({ owner }: ChatWorld, method: string, path: string, body?: unknown): Promise<number> => {
  const response = await owner.fetch(method, `/api/v2/chats/${path}`, body);
  await response.body?.cancel();
  return response.status;
};

test("[CH-4] refuses the twenty-first queued message with 429, and keeps the first twenty", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "go");
  for (let index = 0; index < 20; index++) await sendMessage(world, id, `message ${index}`);
  expect(await fetchStatus(world, "POST", `${id}/messages`, { content: toTextContent("too many") })).toBe(429);
  expect(await fetchStatus(world, "POST", `${id}/queue/999999/promote`)).toBe(404);
  expect(await fetchStatus(world, "DELETE", `${id}/queue/999999`)).toBe(404);
  const { queued_messages } = await world.owner.get<MessagePage>(`/api/v2/chats/${id}/messages`);
  expect(queued_messages.map(({ content }) => content[0]?.text)).toEqual(
    Array.from({ length: 20 }, (_, index) => `message ${index}`),
  );
});

test("[CH-2] refuses invalid transitions and every change of an archived chat with 409, and unknown messages with 404", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "go");
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).say("so").finish();
  await follower.until(({ status, history }) => status === "waiting" && history.length === 2);
  const [userId, assistantId] = [...follower.messages.keys()];
  const content = toTextContent("x");
  const chatBefore = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  for (const [status, method, suffix, body] of [
    [409, "POST", "interrupt"],
    [409, "POST", "tool-results", { results: [{ tool_call_id: "c", output: 1 }] }],
    [409, "POST", "reconcile-invalid"],
    [409, "POST", "queue/999999/promote"],
    [409, "DELETE", "queue/999999"],
    [400, "POST", "queue/zero/promote"],
    [404, "PATCH", "messages/999999", { content }],
    [400, "PATCH", `messages/${assistantId}`, { content }],
    [400, "PATCH", "messages/0", { content }],
    [400, "PATCH", "", { archived: false }],
    [400, "POST", "messages", { content: [] }],
    [400, "POST", "messages", { content, busy_behavior: "wait" }],
  ] as const) {
    const path = suffix === "" ? id : `${id}/${suffix}`;
    expect([method, suffix, await fetchStatus(world, method, path, body)]).toEqual([method, suffix, status]);
  }
  expect(await world.owner.get<Chat>(`/api/v2/chats/${id}`)).toEqual(chatBefore);
  expect(await fetchStatus(world, "PATCH", id, { archived: true })).toBe(204);
  for (const [method, suffix, body] of [
    ["POST", "messages", { content }],
    ["PATCH", `messages/${userId}`, { content }],
    ["POST", "interrupt"],
    ["POST", "queue/1/promote"],
    ["POST", "tool-results", { results: [] }],
  ] as const) {
    expect([method, suffix, await fetchStatus(world, method, `${id}/${suffix}`, body)]).toEqual([method, suffix, 409]);
  }
  expect(await fetchStatus(world, "PATCH", id, { archived: true })).toBe(400);
  expect(follower.history).toEqual(["user: go", "assistant: so"]);
});
