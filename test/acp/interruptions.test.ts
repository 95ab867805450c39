// A coding agent's turn is interrupted.
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import {
  configureAgent,
  FREE,
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

test("[CA-5] an interruption cancels the agent's turn and keeps the output until its end; the next message goes to the same agent", async () => {
  const { id } = await startAgentChat(world, "wait until stopped", FREE);
  await until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
  await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).at(-1)).toBe("assistant: waiting, until stopped");
  await sendMessage(world, id, "say again");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: again");
  const before = ["initialize", "new", 'prompt "wait until stopped"', "cancelled"];
  expect(readAgentLog(world, id)).toEqual([...before, 'prompt "say again"']);
});

test("[CA-5] output in the first second after an interruption is kept, also from an agent that takes longer to stop", async () => {
  const { id } = await startAgentChat(world, "linger late words", FREE);
  await until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
  await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).at(-1)).toBe("assistant: waiting, late words");
  writeFileSync(join(home, ".local/state/slipway/coding-agents/homes", id, "end"), "");
  await sendMessage(world, id, "say again");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: again");
});

test("[CA-5] [CA-10] the chat says that an agent is being installed; an interruption ends that immediately, and the next message waits for the same installation", async () => {
  const installScript = 'echo ran >> "$HOME/slow"; while [ ! -e "$HOME/go" ]; do sleep 0.05; done';
  await configureAgent(world, "slow", { install_script: installScript });
  const { id } = await startAgentChat(world, "say one", { coding_agent: "slow", permissions: null });
  await until(() => existsSync(join(home, "slow")));
  const getWarnings = async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings;
  await until(async () => (await getWarnings()).join().includes("Starting Test agent."));
  await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
  await waitForStatus(id, "waiting");
  await until(async () => (await getWarnings()).length === 0);
  await sendMessage(world, id, "say two");
  writeFileSync(join(home, "go"), "");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: onetwo");
  expect(readFileSync(join(home, "slow"), "utf8")).toBe("ran\n");
  expect(readAgentLog(world, id)).toEqual(["initialize", "new", expect.stringContaining("say two")]);
});

test("[CA-24] commands that the client runs for an agent end when the turn is interrupted", async () => {
  const command = `sleep ${60_000 + process.pid}`;
  const { id } = await startAgentChat(world, `termwait ${command}`, FREE);
  const isProgramRunning = () => Bun.spawnSync(["pgrep", "-fx", command]).stdout.toString().trim() !== "";
  await until(isProgramRunning);
  await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
  await until(() => !isProgramRunning());
  await waitForStatus(id, "waiting");
});

test("[CA-5] an agent that is killed while it ignores an interruption blocks nothing", async () => {
  const { id } = await startAgentChat(world, "stubborn", FREE);
  await until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
  await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
  killAgents(id);
  await waitForStatus(id, "waiting");
  await sendMessage(world, id, "say again");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: again");
});
