// The input of a coding agent in a turn, its installation and removal, and turns that fail.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import {
  configureAgent,
  FREE,
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
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const { waitForStatus, describeMessages } = makeChatSteps(world);

test("[CA-16] attachments reach the agent: text as text, images and documents in its supported form, and a note for all others", async () => {
  const upload = async (name: string, type: string, body: string): Promise<object> => {
    const bytes = type === "image/png" ? Buffer.from(body, "base64") : body;
    const response = await fetch(
      new URL(`/api/v2/chats/files?organization=${world.organization_id}`, world.server.url),
      {
        method: "POST",
        headers: {
          "Service-Session-Token": world.owner.token ?? "",
          "content-type": type,
          "content-disposition": `attachment; filename="${name}"`,
        },
        body: bytes,
      },
    );
    return { type: "file", file_id: ((await response.json()) as { id: string }).id };
  };
  await configureAgent(world, "reader", { variables: { TEST_AGENT_READS_TEXT: "1" } });
  for (const coding_agent of ["test", "reader"]) {
    const { id } = await startAgentChat(world, "say ready", { coding_agent, permissions: null });
    await waitForStatus(id, "waiting");
    const content = [
      { type: "text", text: "say seen" },
      await upload("notes.txt", "text/plain", "remember the milk"),
      await upload("dot.png", "image/png", DOT),
      await upload("paper.pdf", "application/pdf", "%PDF-1.4 paper"),
    ];
    await world.owner.post<unknown>(`/api/v2/chats/${id}/messages`, { content });
    await until(async () => (await describeMessages(id)).at(-1) === "assistant: seen");
    const [, ...attachments] = readAgentLog(world, id).slice(
      readAgentLog(world, id).findLastIndex((line) => line.startsWith("prompt")),
    );
    const prompt = readAgentLog(world, id).findLast((line) => line.startsWith("prompt")) ?? "";
    expect(prompt).toContain("remember the milk");
    if (coding_agent === "test") {
      expect(attachments).toEqual([
        `image image/png ${Buffer.from(DOT, "base64").length}`,
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

test("[CA-23] the agent's modes and models can be selected; a choice applies from the next message on, also after a restart", async () => {
  const { id } = await startAgentChat(world, "say one", FREE);
  await waitForStatus(id, "waiting");
  const path = `/api/v2/chats/${id}`;
  const listOptions = async () => {
    const { agent_options = [] } = await world.owner.get<Chat>(path);
    return agent_options.map((option) => [option.id, option.current, option.choices.map((one) => one.id).join()]);
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
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: two");
  expect(readAgentLog(world, id).slice(-3)).toEqual(["mode careful", "model large", 'prompt "say two"']);
  killAgents(id);
  await until(() => findAgentProcesses(id).length === 0);
  await sendMessage(world, id, "leave default\nsay three");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: three");
  expect(readAgentLog(world, id)).toContain("load");
  expect(readAgentLog(world, id).filter((line) => line === "model large")).toHaveLength(2);
  expect(await listOptions()).toEqual(chosenOptions);
  // A fork keeps the selected options.
  const fork = await world.owner.post<Chat>(`${path}/fork`, {});
  expect(fork.agent_options?.map(({ current }) => current)).toEqual(["careful", "large"]);
  await sendMessage(world, fork.id, "say four");
  await until(async () => (await describeMessages(fork.id)).at(-1) === "assistant: four");
  expect(readAgentLog(world, fork.id).slice(0, 4)).toEqual(["initialize", "new", "mode careful", "model large"]);
});

test("[CA-23] [TO-21] secrets are masked in the options of an agent", async () => {
  const secret = "SuperSecretValue-77123";
  await world.owner.post("/api/v2/users/me/secrets", { name: "model", value: secret });
  await configureAgent(world, "leaky", { variables: { TEST_AGENT_MODEL: secret } });
  const { id } = await startAgentChat(world, "say one", { ...FREE, coding_agent: "leaky" });
  await waitForStatus(id, "waiting");
  const { agent_options = [] } = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  const model = agent_options.find((option) => option.id === "model");
  expect(model?.choices).toEqual([
    { id: "small", name: "Small", description: "" },
    { id: "[hidden]", name: "The [hidden] one", description: "" },
  ]);
  await world.owner.delete("/api/v2/users/me/secrets/model");
});

test("[CA-14] the home of a deleted chat's agent is removed, within a day if the workspace was unreachable", async () => {
  const homesFolder = join(home, ".local/state/slipway/coding-agents/homes");
  const { id } = await startAgentChat(world, "wait", FREE);
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
  const otherChat = await startAgentChat(world, "say x", FREE);
  await until(() => !existsSync(deletedHome));
  expect(existsSync(join(homesFolder, otherChat.id))).toBe(true);
});

test(
  "[CA-9] a refused prompt, an agent that keeps crashing and one that cannot be installed fail the turn with an explanation",
  async () => {
    const getChatError = async (text: string, settings: object = {}) => {
      const { id } = await startAgentChat(world, text, Object.assign({}, FREE, settings));
      await waitForStatus(id, "error");
      return (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).last_error;
    };
    const refusedPrompt = await getChatError("fail this model is unknown");
    expect(refusedPrompt).toMatchObject({
      message: "Test agent has failed.",
      detail: expect.stringContaining("this model is unknown"),
    });
    const script = "echo the mirror is away >&2; exit 3";
    await configureAgent(world, "broken", { display_name: "Broken", install_script: script });
    const brokenInstall = await getChatError("say x", { coding_agent: "broken" });
    expect(brokenInstall).toMatchObject({
      message: "Broken could not be started.",
      detail: expect.stringContaining("the mirror is away"),
    });
    await configureAgent(world, "absent", { display_name: "Absent", command: "no-such-program" });
    expect((await getChatError("say x", { coding_agent: "absent" }))?.detail).toContain('no program "no-such-program"');
  },
  scaleTimeout(180_000),
);

test("[CA-9] a message above the limit fails the turn with the limit", async () => {
  const { id } = await startAgentChat(world, "huge 33", FREE);
  await waitForStatus(id, "error");
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).last_error?.detail).toContain("longer than 32 MiB");
});

test(
  "[CA-10] an install script runs once in a workspace, and what it installs is on the agent's path",
  async () => {
    const script = `echo ran >> "$HOME/installs"; mkdir -p bin; printf '#!/bin/sh\\nexec %s --no-env-file "$@"\\n' ${process.execPath} > bin/installed-agent; chmod +x bin/installed-agent`;
    const path = join(import.meta.dir, "../support/acp/agent.ts");
    await configureAgent(world, "installed", { command: "installed-agent", arguments: [path], install_script: script });
    for (const text of ["say one", "say two"]) {
      const { id } = await startAgentChat(world, text, { coding_agent: "installed", permissions: null });
      await waitForStatus(id, "waiting");
    }
    expect(readFileSync(join(home, "installs"), "utf8")).toBe("ran\n");
  },
  scaleTimeout(180_000),
);

test("[CH-54] a prompt waits for memory of its owner, which is free again once the workspace has the prompt", async () => {
  const { callMemory } = getContext(world.server);
  const reservation = await callMemory.take("others", Number.MAX_SAFE_INTEGER, new AbortController().signal);
  const large = "x".repeat(9 * 1024 * 1024);
  const upload = await fetch(new URL(`/api/v2/chats/files?organization=${world.organization_id}`, world.server.url), {
    method: "POST",
    headers: {
      "Service-Session-Token": world.owner.token ?? "",
      "content-type": "text/plain",
      "content-disposition": 'attachment; filename="large.txt"',
    },
    body: large,
  });
  const { id: file_id } = (await upload.json()) as { id: string };
  const { id } = await startAgentChat(world, "say ready", FREE);
  await waitForStatus(id, "waiting");
  const send = () =>
    world.owner.post<unknown>(`/api/v2/chats/${id}/messages`, {
      content: [
        { type: "text", text: "wait bye" },
        { type: "file", file_id },
      ],
    });
  await send();
  await until(() => callMemory.waiting === 1);
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).status).toBe("running");
  expect(readAgentLog(world, id).filter((line) => line.startsWith("prompt"))).toHaveLength(1);
  await world.owner.post(`/api/v2/chats/${id}/interrupt`);
  await until(() => callMemory.waiting === 0);
  await waitForStatus(id, "waiting");
  await sendMessage(world, id, "wait bye");
  await until(() => callMemory.waiting === 1);
  reservation.release();
  await until(() => readAgentLog(world, id).filter((line) => line.startsWith("prompt")).length === 2);
  // The agent still works, and no memory is reserved for its prompt.
  await until(() => callMemory.used === 0);
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).status).toBe("running");
  await world.owner.post(`/api/v2/chats/${id}/interrupt`);
  await waitForStatus(id, "waiting");
});
