// Coding agents that produce more output than is read: people decide what runs in their workspaces, and others must not be delayed.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { openAgentWorld, readAgentLog, startAgentChat } from "#test/support/acp/agent-world.ts";
import { forFile } from "#test/support/for-file.ts";
import { until } from "#test/support/until.ts";
import { listMessages } from "#test/tools/world.ts";

const world = await forFile(openAgentWorld());
const getChat = (id: string): Promise<Chat> => world.owner.get<Chat>(`/api/v2/chats/${id}`);

test("[CA-33] an agent with hundreds of calls without a result fails with a message, and works again with the next one", async () => {
  const { id } = await startAgentChat(world, "pending 600", { permissions: null });
  await until(async () => (await getChat(id)).status === "error");
  expect((await getChat(id)).last_error?.detail).toBe("It has more than 500 calls without a result.");
  await world.owner.post(`/api/v2/chats/${id}/messages`, { content: [{ type: "text", text: "say fine" }] });
  await until(async () => (await getChat(id)).status === "waiting");
  expect((await listMessages(world.owner, id)).at(-1)?.content.at(-1)?.text).toContain("fine");
});

test("[CA-33] a message with more than 50,000 values ends the program and fails the turn", async () => {
  const { id } = await startAgentChat(world, "diffs 20000", { permissions: null });
  await until(async () => (await getChat(id)).status === "error");
  expect((await getChat(id)).last_error?.detail).toBe("It sent a message that has more than 50000 values.");
});

test("[CA-33] an edit of more than 500 changes is left out entirely, and not asked about", async () => {
  const { id } = await startAgentChat(world, "diffs 501\ndiffsask 501\nsay done", {
    permissions: { default: "ask", rules: [] },
  });
  await until(async () => (await getChat(id)).status === "waiting");
  const parts = (await listMessages(world.owner, id)).flatMap(({ content }) => content);
  const calls = parts.filter(({ type }) => type === "tool-call");
  expect(calls.length).toBe(2);
  for (const { args } of calls) expect(JSON.stringify(args)).not.toContain("new_text");
  expect(readAgentLog(world, id).filter((line) => line.startsWith("answered"))).toEqual(["answered cancelled"]);
  expect(parts.at(-1)?.text).toBe("done");
});

test("[CA-33] arguments that are too large to show are left out of a call and not asked about", async () => {
  const { id } = await startAgentChat(world, "bulky 30000\nbulkyask 30000\nsay done", {
    permissions: { default: "ask", rules: [] },
  });
  await until(async () => (await getChat(id)).status === "waiting");
  const parts = (await listMessages(world.owner, id)).flatMap(({ content }) => content);
  const calls = parts.filter(({ type }) => type === "tool-call");
  expect(calls.map(({ args }) => args)).toEqual(
    Array.from({ length: 2 }, () => ({ title: "bulky", left_out: "This is too large to be shown." })),
  );
  expect(readAgentLog(world, id).filter((line) => line.startsWith("answered"))).toEqual(["answered cancelled"]);
  expect(parts.at(-1)?.text).toBe("done");
});

test("[CA-33] an agent that writes more than a message can contain fails, and its message stays readable", async () => {
  const { id } = await startAgentChat(world, "ramble 6", { permissions: null });
  await until(async () => (await getChat(id)).status === "error");
  expect((await getChat(id)).last_error?.detail).toBe("It has written more than a message of a chat can contain.");
  const size = JSON.stringify(await listMessages(world.owner, id)).length;
  expect(size).toBeGreaterThan(1_000_000);
  expect(size).toBeLessThan(5_000_000);
});
