// Interruption of a coding agent's turn.
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import {
  ALLOW_EVERYTHING,
  configureAgent,
  killAgents,
  makeChatSteps,
  openAgentWorld,
  readAgentLog,
  startAgentChat,
} from "#test/support/acp/agent-world.ts";
import { sendMessage } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { until } from "#test/support/until.ts";

const world = await forFile(openAgentWorld());
const { home } = world;
const { waitForStatus, describeMessages } = makeChatSteps(world);
const interrupt = (id: string) => world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
const waitForPrompt = (id: string) => until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
const waitForLastMessage = (id: string, message: string) =>
  until(async () => (await describeMessages(id)).at(-1) === message);

test("[CA-5] an interruption cancels the agent's turn and keeps its output; the next message goes to the same agent", async () => {
  const { id } = await startAgentChat(world, "wait until stopped", ALLOW_EVERYTHING);
  await waitForPrompt(id);
  await interrupt(id);
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).at(-1)).toBe("assistant: waiting, until stopped");
  await sendMessage(world, id, "say again");
  await waitForLastMessage(id, "assistant: again");
  expect(readAgentLog(world, id)).toEqual([
    "initialize",
    "new",
    'prompt "wait until stopped"',
    "cancelled",
    'prompt "say again"',
  ]);
});

test("[CA-5] keeps output from the first second after an interruption, even if the agent takes longer to stop", async () => {
  const { id } = await startAgentChat(world, "linger late words", ALLOW_EVERYTHING);
  await waitForPrompt(id);
  await interrupt(id);
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).at(-1)).toBe("assistant: waiting, late words");
  writeFileSync(join(home, ".local/state/slipway/coding-agents/homes", id, "end"), "");
  await sendMessage(world, id, "say again");
  await waitForLastMessage(id, "assistant: again");
});

test("[CA-5] [CA-10] an interruption ends a turn that waits for an installation; the next message waits for the same installation", async () => {
  const installScript = 'echo ran >> "$HOME/slow"; while [ ! -e "$HOME/go" ]; do sleep 0.05; done';
  await configureAgent(world, "slow", { install_script: installScript });
  const { id } = await startAgentChat(world, "say one", { coding_agent: "slow", permissions: null });
  await until(() => existsSync(join(home, "slow")));
  const getWarnings = async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings;
  await until(async () => (await getWarnings()).join().includes("Starting Test agent."));
  await interrupt(id);
  await waitForStatus(id, "waiting");
  await until(async () => (await getWarnings()).length === 0);
  await sendMessage(world, id, "say two");
  writeFileSync(join(home, "go"), "");
  await waitForLastMessage(id, "assistant: onetwo");
  expect(readFileSync(join(home, "slow"), "utf8")).toBe("ran\n");
  expect(readAgentLog(world, id)).toEqual(["initialize", "new", expect.stringContaining("say two")]);
});

test("[CA-24] an interruption ends the commands that the client runs for the agent", async () => {
  const command = `sleep ${60_000 + process.pid}`;
  const { id } = await startAgentChat(world, `termwait ${command}`, ALLOW_EVERYTHING);
  const isCommandRunning = () => Bun.spawnSync(["pgrep", "-fx", command]).stdout.toString().trim() !== "";
  await until(isCommandRunning);
  await interrupt(id);
  await until(() => !isCommandRunning());
  await waitForStatus(id, "waiting");
});

test("[CA-5] a chat continues after its agent is killed while ignoring an interruption", async () => {
  const { id } = await startAgentChat(world, "stubborn", ALLOW_EVERYTHING);
  await waitForPrompt(id);
  await interrupt(id);
  killAgents(id);
  await waitForStatus(id, "waiting");
  await sendMessage(world, id, "say again");
  await waitForLastMessage(id, "assistant: again");
});
