// Chats on a server that is killed: acknowledged requests are stored once, and running turns continue.
import { expect, test } from "bun:test";
import type { Chat, CreatedMessage, MessagePage } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { startServe } from "#test/api/edge/serve-process.ts";
import { Follower, loadHistory, toTextContent } from "#test/support/chats.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { joinOutput } from "#test/tools/world.ts";

const signIn = async (url: URL) => {
  const client = await new Client(url).signIn(ADMIN.email, ADMIN.password);
  const [organization] = await client.get<{ id: string }[]>("/api/v2/users/me/organizations");
  return { client, organization_id: organization?.id ?? "" };
};

test("[CH-35] [SB-8] after kill -9, every acknowledged message exists once, queues keep their order, and no ID is reused", async () => {
  using directory = tempDirectory();
  const ids: Record<string, string> = {};
  const queuedIds: number[] = [];
  {
    await using server = await startServe(directory.path);
    const { client, organization_id } = await signIn(server.url);
    const create = (text: string, fields: Record<string, unknown> = {}) =>
      client.post<Chat>("/api/v2/chats", { organization_id, content: toTextContent(text), ...fields });
    const send = (id: string, text: string) =>
      client.post<CreatedMessage>(`/api/v2/chats/${id}/messages`, { content: toTextContent(text) });
    ids.busy = (await create("hang: I was saying")).id;
    for (const text of ["say: second", "say: third", "say: fourth"]) {
      queuedIds.push((await send(ids.busy, text)).queued_message?.id ?? 0);
    }
    await client.post(`/api/v2/chats/${ids.busy}/queue/${queuedIds[2]}/promote`);
    ids.idle = (await create("say: all is well")).id;
    const unsafe_dynamic_tools = [{ name: "ask", description: "asks", input_schema: {} }];
    ids.asking = (await create('tool: ask {"q": 1}', { unsafe_dynamic_tools })).id;
    ids.hanging = (await create("hang: on")).id;
    using idle = await Follower.open(client, ids.idle);
    await idle.until(({ status }) => status === "waiting");
    using asking = await Follower.open(client, ids.asking);
    await asking.until(({ status }) => status === "requires_action");
    using hanging = await Follower.open(client, ids.hanging);
    await hanging.until(({ preview }) => preview === "on");
    await send(ids.hanging, "say: later");
    // A chat that waits for a sub-agent and gets its result.
    ids.root = (await create("agent: hang: deep in thought")).id;
    using root = await Follower.open(client, ids.root);
    await root.until((state) => joinOutput(state) === "deep in thought");
    server.child.kill("SIGKILL");
    await server.child.exited;
  }
  await using server = await startServe(directory.path);
  const { client } = await signIn(server.url);
  using busy = await Follower.open(client, ids.busy ?? "");
  await busy.until(({ status, queue }) => status === "waiting" && queue.length === 0);
  const userMessages = busy.history.filter((line) => line.startsWith("user")).map((line) => line.split(": ").at(-1));
  expect(userMessages).toEqual(["I was saying", "fourth", "second", "third"]);
  expect(await loadHistory(client, ids.idle ?? "")).toEqual(["user: say: all is well", "assistant: all is well"]);
  using asking = await Follower.open(client, ids.asking ?? "");
  await asking.until(({ status }) => status === "requires_action");
  const pendingCalls = asking.events.flatMap((event) =>
    event.type === "action_required" ? event.action_required.tool_calls : [],
  );
  const results = pendingCalls.map(({ tool_call_id }) => ({ tool_call_id, output: "yes" }));
  expect((await client.fetch("POST", `/api/v2/chats/${ids.asking}/tool-results`, { results })).status).toBe(204);
  await asking.until(({ status }) => status === "waiting");
  using hanging = await Follower.open(client, ids.hanging ?? "");
  await hanging.until(({ preview }) => preview === "on");
  await client.post(`/api/v2/chats/${ids.hanging}/interrupt`);
  await hanging.until(({ status }) => status === "waiting");
  expect(hanging.history).toEqual(["user: hang: on", "assistant: on", "user: say: later", "assistant: later"]);
  using root = await Follower.open(client, ids.root ?? "");
  await root.until((state) => joinOutput(state) === "deep in thought");
  const { children } = await client.get<Chat>(`/api/v2/chats/${ids.root}`);
  expect(children).toMatchObject([{ title: "hang: deep in thought", status: "running" }]);
  await client.post(`/api/v2/chats/${children[0]?.id}/interrupt`);
  await root.until(({ status }) => status === "waiting");
  expect(root.history.at(-1)).toBe("assistant: The agent reports: deep in thought");
  const pages = await Promise.all(
    Object.values(ids).map((id) => client.get<MessagePage>(`/api/v2/chats/${id}/messages?limit=200`)),
  );
  const messageIds = pages.flatMap(({ messages }) => messages.map(({ id }) => id));
  expect(new Set(messageIds).size).toBe(messageIds.length);
});

test("[CH-36] the API paths of older clients serve the same chats", async () => {
  using directory = tempDirectory();
  await using server = await startServe(directory.path);
  const { client, organization_id } = await signIn(server.url);
  const body = { organization_id, content: toTextContent("say: hi") };
  const chat = await client.post<Chat>("/api/experimental/chats", body);
  expect((await client.get<Chat>(`/api/v2/chats/${chat.id}`)).id).toBe(chat.id);
  const large = { ...body, content: toTextContent("x".repeat(262_144)) };
  expect((await client.fetch("POST", "/api/experimental/chats", large)).status).toBe(413);
});
