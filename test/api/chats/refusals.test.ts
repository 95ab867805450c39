// Requests that a chat rejects, through the public client: each status of the specification's cheat sheet that no other story covers.
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

test("[CH-4] the twenty-first queued message is refused with 429, and the twenty are kept", async () => {
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

test("[CH-2] an archived chat refuses everything, and so does an invalid transition (409); a missing chat is 404", async () => {
  await using world = await openChatWorld();
  const { id } = await createChat(world, "go");
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).say("so").finish();
  await follower.until(({ status, history }) => status === "waiting" && history.length === 2);
  const [user, assistant] = [...follower.messages.keys()];
  const content = toTextContent("x");
  const before = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  for (const [status, method, tail, body] of [
    [409, "POST", "interrupt"],
    [409, "POST", "tool-results", { results: [{ tool_call_id: "c", output: 1 }] }],
    [409, "POST", "reconcile-invalid"],
    [409, "POST", "queue/999999/promote"],
    [409, "DELETE", "queue/999999"],
    [400, "POST", "queue/zero/promote"],
    [404, "PATCH", "messages/999999", { content }],
    [400, "PATCH", `messages/${assistant}`, { content }],
    [400, "PATCH", "messages/0", { content }],
    [400, "PATCH", "", { archived: false }],
    [400, "POST", "messages", { content: [] }],
    [400, "POST", "messages", { content, busy_behavior: "wait" }],
  ] as const) {
    const path = tail === "" ? id : `${id}/${tail}`;
    expect([method, tail, await fetchStatus(world, method, path, body)]).toEqual([method, tail, status]);
  }
  expect(await world.owner.get<Chat>(`/api/v2/chats/${id}`)).toEqual(before);
  expect(await fetchStatus(world, "PATCH", id, { archived: true })).toBe(204);
  for (const [method, tail, body] of [
    ["POST", "messages", { content }],
    ["PATCH", `messages/${user}`, { content }],
    ["POST", "interrupt"],
    ["POST", "queue/1/promote"],
    ["POST", "tool-results", { results: [] }],
  ] as const) {
    expect([method, tail, await fetchStatus(world, method, `${id}/${tail}`, body)]).toEqual([method, tail, 409]);
  }
  expect(await fetchStatus(world, "PATCH", id, { archived: true })).toBe(400);
  expect(follower.history).toEqual(["user: go", "assistant: so"]);
});
