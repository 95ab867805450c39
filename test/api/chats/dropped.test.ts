// Connections that break after the commit and before the response: the client retries with its key and gets the lost response, and nothing
// happens twice (RELIABILITY check 9).
import { expect, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import type { Chat, CreatedMessage, MessagePage } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { Follower, openChatWorld, toTextContent } from "#test/support/chats.ts";

/** A proxy that forwards every request and drops every response with its connection. */
const startDroppingProxy = async (port: number) => {
  const sockets = new Set<Socket>();
  let droppedCount = 0;
  const proxy = createServer((client) => {
    const server = connect(port, "127.0.0.1");
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => {});
    }
    client.pipe(server);
    server.once("data", () => {
      droppedCount += 1;
      client.resetAndDestroy();
      server.destroy();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}`,
    get droppedCount() {
      return droppedCount;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
};

test("[CH-40] a retry with the same key after a lost response gets the same response, and nothing happens twice", async () => {
  await using world = await openChatWorld();
  const { owner, organization_id } = world;
  await using proxy = await startDroppingProxy(Number(world.server.url.port));
  const droppedClient = new Client(proxy.url, owner.token);
  let keyCount = 0;
  /** Sends a request four times under one key: the first two responses are lost, the other two must be equal. */
  const post = async <T>(path: string, body: unknown): Promise<T> => {
    const headers = { "Idempotency-Key": `key-${keyCount++}` };
    for (let attempt = 0; attempt < 2; attempt++) {
      const isLost = await droppedClient.fetch("POST", path, body, { headers }).then(
        () => false,
        () => true,
      );
      expect(isLost).toBe(true);
    }
    const answer = (await owner.post(path, body, { headers })) as T;
    expect(await owner.post(path, body, { headers })).toEqual(answer);
    return answer;
  };
  const unsafe_dynamic_tools = [{ name: "ask", description: "asks", input_schema: {} }];
  const { id } = await post<Chat>("/api/v2/chats", {
    organization_id,
    content: toTextContent("hello"),
    unsafe_dynamic_tools,
  });
  expect((await owner.get<Chat[]>("/api/v2/chats")).map((chat) => chat.id)).toEqual([id]);
  using follower = await Follower.open(owner, id);
  const call = await world.models.next();
  const path = `/api/v2/chats/${id}`;
  const queuedIds: (number | undefined)[] = [];
  for (const text of ["one", "two", "three"]) {
    const answer = await post<CreatedMessage>(`${path}/messages`, { content: toTextContent(text) });
    queuedIds.push(answer.queued_message?.id);
  }
  await follower.until(({ queue }) => queue.length === 3);
  expect(follower.queue.map(({ id }) => id as number | undefined)).toEqual(queuedIds);
  call.callTool("c1", "ask").finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  await post(`${path}/tool-results`, { results: [{ tool_call_id: "c1", output: 1 }] });
  for (let call = 0; call < 4; call++) (await world.models.next()).finish();
  await follower.until(({ status, queue }) => status === "waiting" && queue.length === 0);
  const { messages } = await owner.get<MessagePage>(`${path}/messages`);
  expect(messages.reverse().map(({ role, content }) => `${role} ${content[0]?.text ?? ""}`.trim())).toEqual([
    ...["user hello", "assistant", "tool", "assistant Done."],
    ...["one", "two", "three"].flatMap((text) => [`user ${text}`, "assistant Done."]),
  ]);
  expect(world.models.calls).toHaveLength(5);
  expect(proxy.droppedCount).toBe(10);
});
