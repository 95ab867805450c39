// Kills and restarts of a coding agent, its daemon and the server, and new sessions with the earlier conversation.
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import { startAgentProcess } from "#test/api/agents/reach.ts";
import {
  ALLOW_EVERYTHING,
  ASK_BEFORE_CHANGES,
  configureAgent,
  findAgentProcesses,
  killAgents,
  listPendingCalls,
  makeChatSteps,
  openAgentWorld,
  readAgentLog,
  startAgentChat,
} from "#test/support/acp/agent-world.ts";
import { sendMessage } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { until } from "#test/support/until.ts";
import { listMessages } from "#test/tools/world.ts";

const world = await forFile(openAgentWorld());
const { home } = world;
const { waitForStatus, describeMessages, answer } = makeChatSteps(world);
const waitForPrompt = (id: string) => until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
const waitForPendingCall = (id: string) => until(async () => (await listPendingCalls(world.owner, id)).length > 0);
const waitForLastMessage = (id: string, message: string) =>
  until(async () => (await describeMessages(id)).at(-1) === message);
const killAndAwaitEnd = async (id: string): Promise<void> => {
  killAgents(id);
  await until(() => findAgentProcesses(id).length === 0);
};

test("[CA-6] a killed agent is restarted and loads its session; nothing is stored twice", async () => {
  const { id } = await startAgentChat(world, "say first", ALLOW_EVERYTHING);
  await waitForStatus(id, "waiting");
  await killAndAwaitEnd(id);
  await sendMessage(world, id, "say second");
  await waitForLastMessage(id, "assistant: second");
  expect(readAgentLog(world, id)).toEqual([
    "initialize",
    "new",
    'prompt "say first"',
    "initialize",
    "load",
    'prompt "say second"',
  ]);
  expect(await describeMessages(id)).toHaveLength(4);
});

test("[CA-6] an agent that dies while a call waits is restarted; the call returns an error, and the agent continues", async () => {
  const { id } = await startAgentChat(world, "run echo lost", ASK_BEFORE_CHANGES);
  await waitForPendingCall(id);
  await killAndAwaitEnd(id);
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).join("\n")).toContain("The agent was restarted before this call had a result.");
  expect(readAgentLog(world, id).at(-1)).toContain("continue where you left off");
});

test("[CA-6] an agent that is killed while it answers or runs a command is restarted, and continues", async () => {
  for (const text of ["wait", "free touch begun; sleep 60"]) {
    const { id } = await startAgentChat(world, text, ALLOW_EVERYTHING);
    await waitForPrompt(id);
    if (text !== "wait") await until(() => existsSync(join(home, "begun")));
    killAgents(id);
    await waitForStatus(id, "waiting");
    expect(readAgentLog(world, id).at(-1)).toContain("continue where you left off");
    if (text !== "wait")
      expect((await describeMessages(id)).join("\n")).toContain("restarted before this call had a result");
  }
});

test("[CA-7] an agent that dies while loading its session gets a new session with the conversation", async () => {
  await configureAgent(world, "fragile", { variables: { TEST_AGENT_DIES_LOADING: "1" } });
  const { id } = await startAgentChat(world, "say first", { coding_agent: "fragile", permissions: null });
  await waitForStatus(id, "waiting");
  await killAndAwaitEnd(id);
  await sendMessage(world, id, "say second");
  await waitForLastMessage(id, "assistant: second");
  expect(readAgentLog(world, id).at(-1)).toContain("<conversation>");
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings.join()).toContain("could not load its session");
});

test("[CA-7] an agent that cannot load its session receives the conversation as text, and the chat shows a warning", async () => {
  await configureAgent(world, "forgets", { variables: { TEST_AGENT_FORGETS: "1" } });
  const { id } = await startAgentChat(world, "say first", { coding_agent: "forgets", permissions: null });
  await waitForStatus(id, "waiting");
  await killAndAwaitEnd(id);
  await sendMessage(world, id, "say second");
  await waitForLastMessage(id, "assistant: second");
  expect(readAgentLog(world, id).at(-1)).toContain("<conversation>");
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings.join()).toContain("could not load its session");
});

test("[CA-8] an edited message starts a new session with the earlier messages and without the replaced one", async () => {
  const { id } = await startAgentChat(world, "say one", ALLOW_EVERYTHING);
  await waitForStatus(id, "waiting");
  await sendMessage(world, id, "say two");
  await waitForLastMessage(id, "assistant: two");
  const messages = await listMessages(world.owner, id);
  const content = [{ type: "text", text: "say three" }];
  await world.owner.patch<unknown>(`/api/v2/chats/${id}/messages/${messages[2]?.id}`, { content });
  await waitForLastMessage(id, "assistant: three");
  const lastPrompt = readAgentLog(world, id).at(-1) ?? "";
  expect(lastPrompt).toContain("say one");
  expect(lastPrompt).toContain("say three");
  expect(lastPrompt).not.toContain("say two");
});

test("[CA-6] a restarted server asks the same question; a call that the restarted agent does not know returns an error", async () => {
  const { id } = await startAgentChat(world, "run echo kept", ASK_BEFORE_CHANGES);
  await waitForPendingCall(id);
  await world.restart();
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).join("\n")).toContain("The agent was restarted before this call had a result.");
  expect(readAgentLog(world, id).filter((line) => line === "load")).toHaveLength(1);
});

test("[CA-6] a server that restarts during a turn or an installation continues it, and ends the old agent", async () => {
  const script = 'echo ran >> "$HOME/later"; while [ ! -e "$HOME/finish" ]; do sleep 0.05; done';
  await configureAgent(world, "later", { install_script: script });
  const installingChat = await startAgentChat(world, "say installed", { coding_agent: "later", permissions: null });
  await until(() => existsSync(join(home, "later")));
  const { id } = await startAgentChat(world, "wait", ALLOW_EVERYTHING);
  await waitForPrompt(id);
  const oldPids = findAgentProcesses(id);
  expect(oldPids.length).toBeGreaterThan(0);
  await world.restart();
  writeFileSync(join(home, "finish"), "");
  await waitForLastMessage(installingChat.id, "assistant: installed");
  expect(readFileSync(join(home, "later"), "utf8")).toBe("ran\n");
  await waitForStatus(id, "waiting");
  expect(readAgentLog(world, id).at(-1)).toContain("continue where you left off");
  expect(findAgentProcesses(id).filter((pid) => oldPids.includes(pid))).toEqual([]);
});

test("[CA-6] agents end with their killed daemon, and the next daemon's agent continues the turn", async () => {
  const { id } = await startAgentChat(world, "wait", ALLOW_EVERYTHING);
  await waitForPrompt(id);
  const askingChat = await startAgentChat(world, "run echo asked", ASK_BEFORE_CHANGES);
  await waitForPendingCall(askingChat.id);
  const findAllProcesses = () => [...findAgentProcesses(id), ...findAgentProcesses(askingChat.id)];
  const oldPids = findAllProcesses();
  world.daemon.process.kill("SIGKILL");
  await world.daemon.process.exited;
  await using _daemon = await startAgentProcess(world.server, world.seeded, home);
  await waitForStatus(id, "waiting");
  await until(() => !findAgentProcesses(id).some((pid) => oldPids.includes(pid)));
  expect(readAgentLog(world, id).at(-1)).toContain("continue where you left off");
  await answer(askingChat.id, "allow");
  await waitForStatus(askingChat.id, "waiting");
  expect((await describeMessages(askingChat.id)).join("\n")).toContain(
    "The agent was restarted before this call had a result.",
  );
  expect(findAllProcesses().filter((pid) => oldPids.includes(pid))).toEqual([]);
});
