// Coding agents that produce too much output. Users choose the programs in their workspaces, which must not delay other users.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { openAgentWorld, readAgentLog, startAgentChat } from "#test/support/acp/agent-world.ts";
import { forFile } from "#test/support/for-file.ts";
import { until } from "#test/support/until.ts";
import { listMessages } from "#test/tools/world.ts";

const world = await forFile(openAgentWorld());
const getChat = (id: string): Promise<Chat> => world.owner.get<Chat>(`/api/v2/chats/${id}`);
const waitForError = async (id: string): Promise<string | undefined> => {
  await until(async () => (await getChat(id)).status === "error");
  return (await getChat(id)).last_error?.detail;
};
/** Waits for the end of the turn, and returns its calls, its last text and the answers to the agent's questions. */
const readFinishedTurn = async (id: string) => {
  await until(async () => (await getChat(id)).status === "waiting");
  const parts = (await listMessages(world.owner, id)).flatMap(({ content }) => content);
  const calls = parts.filter(({ type }) => type === "tool-call");
  const answers = readAgentLog(world, id).filter((line) => line.startsWith("answered"));
  return { calls, answers, lastText: parts.at(-1)?.text };
};

test("[CA-33] an agent with more than 500 unfinished calls fails the turn, and works again with the next message", async () => {
  const { id } = await startAgentChat(world, "pending 600", { permissions: null });
  expect(await waitForError(id)).toBe("It has more than 500 calls without a result.");
  await world.owner.post(`/api/v2/chats/${id}/messages`, { content: [{ type: "text", text: "say fine" }] });
  await until(async () => (await getChat(id)).status === "waiting");
  expect((await listMessages(world.owner, id)).at(-1)?.content.at(-1)?.text).toContain("fine");
});

test("[CA-33] a message with more than 50,000 values ends the agent and fails the turn", async () => {
  const { id } = await startAgentChat(world, "diffs 20000", { permissions: null });
  expect(await waitForError(id)).toBe("It sent a message that has more than 50000 values.");
});

test("[CA-33] omits an edit with more than 500 changes and asks no question about it", async () => {
  const { id } = await startAgentChat(world, "diffs 501\ndiffsask 501\nsay done", {
    permissions: { default: "ask", rules: [] },
  });
  const { calls, answers, lastText } = await readFinishedTurn(id);
  expect(calls.length).toBe(2);
  for (const { args } of calls) expect(JSON.stringify(args)).not.toContain("new_text");
  expect(answers).toEqual(["answered cancelled"]);
  expect(lastText).toBe("done");
});

test("[CA-33] omits arguments that are too large to show and asks no question about them", async () => {
  const { id } = await startAgentChat(world, "bulky 30000\nbulkyask 30000\nsay done", {
    permissions: { default: "ask", rules: [] },
  });
  const { calls, answers, lastText } = await readFinishedTurn(id);
  expect(calls.map(({ args }) => args)).toEqual(
    Array.from({ length: 2 }, () => ({ title: "bulky", left_out: "This is too large to be shown." })),
  );
  expect(answers).toEqual(["answered cancelled"]);
  expect(lastText).toBe("done");
});

test("[CA-33] an agent whose output exceeds the size of a message fails the turn, and the message stays readable", async () => {
  const { id } = await startAgentChat(world, "ramble 6", { permissions: null });
  expect(await waitForError(id)).toBe("It has written more than a message of a chat can contain.");
  const size = JSON.stringify(await listMessages(world.owner, id)).length;
  expect(size).toBeGreaterThan(1_000_000);
  expect(size).toBeLessThan(5_000_000);
});
