// A chat's context in its history: a real server, a real daemon, and files on its disk.
import { expect, test } from "bun:test";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Chat, ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import { sendMessage } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { until } from "#test/support/until.ts";
import { listMessages, openChat, openToolWorld } from "../tools/world.ts";

const world = await forFile(openToolWorld());

const writeHomeFile = (path: string, text: string): void => {
  const file = join(world.home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
};
const listContextMessages = (messages: readonly ChatMessage[]): ChatMessage[] =>
  messages.filter(({ content }) => content.some(({ type }) => type === "context-file" || type === "skill"));

test("[CX-2] [CX-14] a chat's history lists its instruction files and skills, again only after changes, and marks files that were truncated", async () => {
  writeHomeFile("AGENTS.md", "Always greet.");
  writeHomeFile("CLAUDE.md", `Long words. ${"x".repeat(65_536)}`);
  writeHomeFile("skills/deploy/SKILL.md", "---\nname: deploy\ndescription: how we deploy\n---\nDo it well.\n");
  const { id, call } = await openChat(world);
  const path = `/api/v2/chats/${id}`;
  const loadChat = () => world.owner.get<Chat>(path);
  const refreshUntil = (matches: (chat: Chat) => boolean) =>
    until(async () => {
      await world.owner.fetch("PUT", `${path}/context`, {});
      const chat = await loadChat();
      return matches(chat) && chat;
    });
  const waitUntilIdle = async () => {
    await until(async () => (await loadChat()).status === "waiting");
  };
  const { context } = await refreshUntil((chat) => chat.context?.resources.length === 3);
  expect(context?.resources[1]).toEqual({
    kind: "instruction_file",
    status: "ok",
    source: join(world.home, "CLAUDE.md"),
    size_bytes: 65_548,
    error: "has 65548 bytes, more than 65536",
  });
  call.say("hello").finish();
  await waitUntilIdle();

  await sendMessage(world, id, "and now?");
  const secondCall = await world.models.next();
  expect(secondCall.prompt).not.toContain("context-file");
  const system = secondCall.request.messages[0]?.content[0]?.text ?? "";
  expect(system).toContain("Always greet.");
  expect(system).toContain("CLAUDE.md continues beyond this");
  secondCall.say("hello again").finish();
  await waitUntilIdle();
  const message = listContextMessages(await listMessages(world.owner, id)).at(-1);
  const agent_id = (await loadChat()).agent_id as string;
  const filePart = { type: "context-file" as const, context_file_agent_id: { uuid: agent_id, valid: true } };
  expect(message?.role).toBe("system");
  expect(message?.content).toEqual([
    { ...filePart, context_file_path: join(world.home, "AGENTS.md") },
    { ...filePart, context_file_path: join(world.home, "CLAUDE.md"), context_file_truncated: true },
    { type: "skill", skill_name: "deploy", skill_description: "how we deploy" },
  ]);
  const upstream = { headers: { "Coder-Session-Token": world.owner.token as string } };
  const response = await world.owner
    .withToken(undefined)
    .fetch("GET", `${path}/messages?limit=200`, undefined, upstream);
  const upstreamMessage = listContextMessages(((await response.json()) as MessagePage).messages)[0];
  expect(upstreamMessage?.content[0]?.context_file_agent_id as unknown).toBe(agent_id);

  // Unchanged files are not repeated; changed files are.
  const messageCount = listContextMessages(await listMessages(world.owner, id)).length;
  await sendMessage(world, id, "go on");
  (await world.models.next()).say("yes").finish();
  await waitUntilIdle();
  expect(listContextMessages(await listMessages(world.owner, id))).toHaveLength(messageCount);
  writeHomeFile("AGENTS.md", "Never greet.");
  await refreshUntil((chat) => chat.context?.resources[0]?.size_bytes === 12);
  await sendMessage(world, id, "once more");
  (await world.models.next()).say("yes").finish();
  await waitUntilIdle();
  expect(listContextMessages(await listMessages(world.owner, id))).toHaveLength(messageCount + 1);
});
