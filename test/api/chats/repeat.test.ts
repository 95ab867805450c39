// Requests repeated after a dropped connection: with an Idempotency-Key, nothing happens twice.
import { expect, test } from "bun:test";
import type { Chat, CreatedMessage } from "#schema/chats/chat.ts";
import type { Generic } from "#schema/generic.ts";
import { createChat, Follower, openChatWorld, toTextContent } from "#test/support/chats.ts";

test("[CH-40] creations, messages and tool results with a key happen once, however often and late they are sent", async () => {
  await using world = await openChatWorld();
  const { owner, organization_id } = world;
  const headers = { "Idempotency-Key": "one" };
  const unsafe_dynamic_tools = [{ name: "ask", description: "asks", input_schema: {} }];
  const body = { organization_id, content: toTextContent("hello"), unsafe_dynamic_tools };
  const created = await Promise.all([1, 2, 3].map(() => owner.post<Chat>("/api/v2/chats", body, { headers })));
  const [{ id } = { id: "" }] = created;
  expect(new Set(created.map((chat) => chat.id)).size).toBe(1);
  expect((await owner.get<Chat[]>("/api/v2/chats")).length).toBe(1);
  using follower = await Follower.open(owner, id);
  const call = await world.models.next();
  const send = (content: unknown) =>
    owner.post<CreatedMessage>(`/api/v2/chats/${id}/messages`, { content }, { headers });
  const firstResponse = await send(toTextContent("more"));
  expect(await send(toTextContent("more"))).toEqual(firstResponse);
  await follower.until(({ queue }) => queue.length === 1);
  call.callTool("c1", "ask").finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  const results = [{ tool_call_id: "c1", output: 1 }];
  const answer = async () =>
    (await owner.fetch("POST", `/api/v2/chats/${id}/tool-results`, { results }, { headers })).status;
  expect([await answer(), await answer()]).toEqual([204, 204]);
  (await world.models.next()).finish();
  expect((await world.models.next()).prompt).toBe("more");
  // The queued message is part of the history by now, but the response is still the first one.
  expect(await send(toTextContent("more"))).toEqual(firstResponse);
  // A body with its members in another order is the same request. Another body is a different request, and is refused.
  const reorderedBody = { unsafe_dynamic_tools, content: toTextContent("hello"), organization_id };
  expect((await owner.post<Chat>("/api/v2/chats", reorderedBody, { headers })).id).toBe(id);
  const conflicts = [
    ["/api/v2/chats", { ...body, content: toTextContent("hello, too") }],
    [`/api/v2/chats/${id}/messages`, { content: toTextContent("less") }],
    [`/api/v2/chats/${id}/tool-results`, { results: [{ tool_call_id: "c1", output: 2 }] }],
  ] as const;
  for (const [path, changed] of conflicts) {
    const refused = await owner.fetch("POST", path, changed, { headers });
    expect([path, refused.status, ((await refused.json()) as Generic).message]).toEqual([
      ...[path, 409],
      "This Idempotency-Key was already used with a different body.",
    ]);
  }
  const fork = (title: string) => owner.fetch("POST", `/api/v2/chats/${id}/fork`, { title }, { headers });
  expect([(await fork("a")).status, (await fork("a")).status, (await fork("b")).status]).toEqual([201, 201, 409]);
  const chatWithoutKey = await createChat(world, "hello");
  expect(chatWithoutKey.id).not.toBe(id);
  const longKey = { "Idempotency-Key": "x".repeat(129) };
  expect((await owner.fetch("POST", "/api/v2/chats", body, { headers: longKey })).status).toBe(400);
});
