// Turns of a coding agent: its input, its options, installation, removal and failures.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import {
  ALLOW_EVERYTHING,
  configureAgent,
  findAgentProcesses,
  killAgents,
  makeChatSteps,
  openAgentWorld,
  readAgentLog,
  startAgentChat,
} from "#test/support/acp/agent-world.ts";
import { sendMessage } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

const world = await forFile(openAgentWorld());
const { home } = world;
/** A one-pixel image. */
const DOT = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);
const { waitForStatus, describeMessages } = makeChatSteps(world);
const waitForLastMessage = (id: string, message: string) =>
  until(async () => (await describeMessages(id)).at(-1) === message);

/** Uploads a file and returns the part of a message that attaches it. */
const uploadFile = async (name: string, type: string, body: string | Buffer): Promise<object> => {
  const url = new URL(`/api/v2/chats/files?organization=${world.organization_id}`, world.server.url);
  const headers = {
    "Service-Session-Token": world.owner.token ?? "",
    "content-type": type,
    "content-disposition": `attachment; filename="${name}"`,
  };
  const response = await fetch(url, { method: "POST", headers, body });
  const { id: file_id } = (await response.json()) as { id: string };
  return { type: "file", file_id };
};

test("[CA-16] an agent receives each attachment in a form that it supports, or else a note about it", async () => {
  await configureAgent(world, "reader", { variables: { TEST_AGENT_READS_TEXT: "1" } });
  for (const coding_agent of ["test", "reader"]) {
    const { id } = await startAgentChat(world, "say ready", { coding_agent, permissions: null });
    await waitForStatus(id, "waiting");
    const content = [
      { type: "text", text: "say received" },
      await uploadFile("notes.txt", "text/plain", "remember the milk"),
      await uploadFile("dot.png", "image/png", DOT),
      await uploadFile("paper.pdf", "application/pdf", "%PDF-1.4 paper"),
    ];
    await world.owner.post<unknown>(`/api/v2/chats/${id}/messages`, { content });
    await waitForLastMessage(id, "assistant: received");
    const log = readAgentLog(world, id);
    const [prompt, ...attachments] = log.slice(log.findLastIndex((line) => line.startsWith("prompt")));
    expect(prompt).toContain("remember the milk");
    if (coding_agent === "test") {
      expect(attachments).toEqual([
        `image image/png ${DOT.length}`,
        "resource attachment:///paper.pdf application/pdf %PDF-1.4 paper",
      ]);
    } else {
      expect(attachments).toEqual([]);
      expect(prompt).toContain('The agent cannot display the attached image \\"dot.png\\".');
      expect(prompt).toContain('The agent cannot read the attached file \\"paper.pdf\\".');
    }
  }
});

test("[CA-17] each message sets the agent's mode to the chat's, even if the agent has left plan mode", async () => {
  const { id } = await startAgentChat(world, "say one", { permissions: null, plan_mode: "plan" });
  await waitForStatus(id, "waiting");
  const send = async (text: string, plan_mode: string): Promise<void> => {
    await sendMessage(world, id, text, { plan_mode });
    await until(() => readAgentLog(world, id).at(-1) === `prompt ${JSON.stringify(text)}`);
    await waitForStatus(id, "waiting");
  };
  await send("leave default", "plan");
  await send("say three", "plan");
  await send("say four", "");
  await send("say five", "");
  expect(readAgentLog(world, id)).toEqual([
    ...["initialize", "new", "mode plan", 'prompt "say one"', 'prompt "leave default"'],
    ...["mode plan", 'prompt "say three"', "mode default", 'prompt "say four"', 'prompt "say five"'],
  ]);
});

test("[CA-23] a chosen mode and model apply from the next message on, even after the agent restarts", async () => {
  const { id } = await startAgentChat(world, "say one", ALLOW_EVERYTHING);
  await waitForStatus(id, "waiting");
  const path = `/api/v2/chats/${id}`;
  const listOptions = async () => {
    const { agent_options = [] } = await world.owner.get<Chat>(path);
    return agent_options.map((option) => [option.id, option.current, option.choices.map((choice) => choice.id).join()]);
  };
  const choices = { mode: "default,plan,careful", model: "small,large" };
  expect(await listOptions()).toEqual([
    ["mode", "default", choices.mode],
    ["model", "small", choices.model],
  ]);
  for (const agent_options of [{ model: "huge" }, { mode: "careful", speed: "high" }]) {
    await expect(world.owner.patch<unknown>(path, { agent_options })).rejects.toMatchObject({ status: 400 });
  }
  await world.owner.patch<unknown>(path, { agent_options: { mode: "careful", model: "large" } });
  const chosenOptions = [
    ["mode", "careful", choices.mode],
    ["model", "large", choices.model],
  ];
  expect(await listOptions()).toEqual(chosenOptions);
  await sendMessage(world, id, "say two");
  await waitForLastMessage(id, "assistant: two");
  expect(readAgentLog(world, id).slice(-3)).toEqual(["mode careful", "model large", 'prompt "say two"']);
  killAgents(id);
  await until(() => findAgentProcesses(id).length === 0);
  await sendMessage(world, id, "leave default\nsay three");
  await waitForLastMessage(id, "assistant: three");
  expect(readAgentLog(world, id)).toContain("load");
  expect(readAgentLog(world, id).filter((line) => line === "model large")).toHaveLength(2);
  expect(await listOptions()).toEqual(chosenOptions);
  // A fork keeps the selected options.
  const fork = await world.owner.post<Chat>(`${path}/fork`, {});
  expect(fork.agent_options?.map(({ current }) => current)).toEqual(["careful", "large"]);
  await sendMessage(world, fork.id, "say four");
  await waitForLastMessage(fork.id, "assistant: four");
  expect(readAgentLog(world, fork.id).slice(0, 4)).toEqual(["initialize", "new", "mode careful", "model large"]);
});

test("[CA-23] [TO-21] masks secrets in an agent's options", async () => {
  const secret = "SuperSecretValue-77123";
  await world.owner.post("/api/v2/users/me/secrets", { name: "model", value: secret });
  await configureAgent(world, "leaky", { variables: { TEST_AGENT_MODEL: secret } });
  const { id } = await startAgentChat(world, "say one", { ...ALLOW_EVERYTHING, coding_agent: "leaky" });
  await waitForStatus(id, "waiting");
  const { agent_options = [] } = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  const model = agent_options.find((option) => option.id === "model");
  expect(model?.choices).toEqual([
    { id: "small", name: "Small", description: "" },
    { id: "[hidden]", name: "The [hidden] one", description: "" },
  ]);
  await world.owner.delete("/api/v2/users/me/secrets/model");
});

test("[CA-14] removes the agent's home with its chat, or within a day if the workspace was unreachable", async () => {
  const homesFolder = join(home, ".local/state/slipway/coding-agents/homes");
  const { id } = await startAgentChat(world, "wait", ALLOW_EVERYTHING);
  await until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
  await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
  await waitForStatus(id, "waiting");
  expect(findAgentProcesses(id).length).toBeGreaterThan(0);
  await world.owner.delete(`/api/v2/chats/${id}`);
  await until(() => !existsSync(join(homesFolder, id)) && findAgentProcesses(id).length === 0);
  const deletedHome = join(homesFolder, "00000000-0000-4000-8000-000000000000");
  mkdirSync(deletedHome);
  const yesterday = new Date(Date.now() - 25 * 3_600_000);
  utimesSync(join(home, ".local/state/slipway/checkpoints/tidied"), yesterday, yesterday);
  const otherChat = await startAgentChat(world, "say x", ALLOW_EVERYTHING);
  await until(() => !existsSync(deletedHome));
  expect(existsSync(join(homesFolder, otherChat.id))).toBe(true);
});

test(
  "[CA-9] a refused prompt, a failed installation and a missing program fail the turn with an explanation",
  async () => {
    const runFailingChat = async (text: string, settings: object = {}) => {
      const { id } = await startAgentChat(world, text, Object.assign({}, ALLOW_EVERYTHING, settings));
      await waitForStatus(id, "error");
      return (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).last_error;
    };
    const refusedPrompt = await runFailingChat("fail this model is unknown");
    expect(refusedPrompt).toMatchObject({
      message: "Test agent has failed.",
      detail: expect.stringContaining("this model is unknown"),
    });
    const script = "echo the mirror is away >&2; exit 3";
    await configureAgent(world, "broken", { display_name: "Broken", install_script: script });
    const brokenInstall = await runFailingChat("say x", { coding_agent: "broken" });
    expect(brokenInstall).toMatchObject({
      message: "Broken could not be started.",
      detail: expect.stringContaining("the mirror is away"),
    });
    await configureAgent(world, "absent", { display_name: "Absent", command: "no-such-program" });
    const absentProgram = await runFailingChat("say x", { coding_agent: "absent" });
    expect(absentProgram?.detail).toContain('no program "no-such-program"');
  },
  scaleTimeout(180_000),
);

test("[CA-9] a message from the agent above 32 MiB fails the turn with that limit", async () => {
  const { id } = await startAgentChat(world, "huge 33", ALLOW_EVERYTHING);
  await waitForStatus(id, "error");
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).last_error?.detail).toContain("longer than 32 MiB");
});

test(
  "[CA-10] an install script runs once in a workspace, and adds the program to the agent's path",
  async () => {
    const script = [
      'echo ran >> "$HOME/installs"',
      "mkdir -p bin",
      `printf '#!/bin/sh\\nexec %s --no-env-file "$@"\\n' ${process.execPath} > bin/installed-agent`,
      "chmod +x bin/installed-agent",
    ].join("; ");
    const agentPath = join(import.meta.dir, "../support/acp/agent.ts");
    await configureAgent(world, "installed", {
      command: "installed-agent",
      arguments: [agentPath],
      install_script: script,
    });
    for (const text of ["say one", "say two"]) {
      const { id } = await startAgentChat(world, text, { coding_agent: "installed", permissions: null });
      await waitForStatus(id, "waiting");
    }
    expect(readFileSync(join(home, "installs"), "utf8")).toBe("ran\n");
  },
  scaleTimeout(180_000),
);

test("[CH-54] a prompt waits for its owner's share of memory and releases it once the workspace has the prompt", async () => {
  const { callMemory } = getContext(world.server);
  const reservation = await callMemory.take("others", Number.MAX_SAFE_INTEGER, new AbortController().signal);
  const largeFile = await uploadFile("large.txt", "text/plain", "x".repeat(9 * 1024 * 1024));
  const { id } = await startAgentChat(world, "say ready", ALLOW_EVERYTHING);
  await waitForStatus(id, "waiting");
  const listPrompts = () => readAgentLog(world, id).filter((line) => line.startsWith("prompt"));
  const content = [{ type: "text", text: "wait bye" }, largeFile];
  await world.owner.post<unknown>(`/api/v2/chats/${id}/messages`, { content });
  await until(() => callMemory.waiting === 1);
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).status).toBe("running");
  expect(listPrompts()).toHaveLength(1);
  await world.owner.post(`/api/v2/chats/${id}/interrupt`);
  await until(() => callMemory.waiting === 0);
  await waitForStatus(id, "waiting");
  await sendMessage(world, id, "wait bye");
  await until(() => callMemory.waiting === 1);
  reservation.release();
  await until(() => listPrompts().length === 2);
  // The agent still works, and no memory is reserved for its prompt.
  await until(() => callMemory.used === 0);
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).status).toBe("running");
  await world.owner.post(`/api/v2/chats/${id}/interrupt`);
  await waitForStatus(id, "waiting");
});
