// Chats with a coding agent when other events interfere.
import { expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import { startAgentProcess } from "#test/api/agents/reach.ts";
import {
  configureAgent,
  findAgentProcesses,
  killAgents,
  listPendingCalls,
  openAgentWorld,
  readAgentLog,
  startAgentChat,
} from "#test/support/acp/agent-world.ts";
import { sendMessage } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { listMessages } from "#test/tools/world.ts";

const world = await forFile(openAgentWorld());
const { home } = world;
/** A one-pixel image. */
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const ASKS = { permissions: { default: "ask_changes", rules: [] } };
const FREE = { permissions: null };

const waitForStatus = (id: string, status: string) =>
  until(async () => (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).status === status, {
    what: `${status} of ${id}`,
  });
const describeMessages = async (id: string): Promise<string[]> =>
  (await listMessages(world.owner, id)).map(
    ({ role, content }) =>
      `${role}: ${content.map((part) => part.text ?? (part.type === "tool-result" ? JSON.stringify(part.result) : part.tool_name)).join("|")}`,
  );
const answer = async (id: string, decision: "allow" | "deny", more: object = {}): Promise<void> => {
  const [call] = await until(async () => {
    const calls = await listPendingCalls(world.owner, id);
    return calls.length > 0 && calls;
  });
  const one = Object.assign({ tool_call_id: call?.tool_call_id, decision }, more);
  await world.owner.post<unknown>(`/api/v2/chats/${id}/permissions`, { answers: [one] });
};
test("[CA-3] rules apply first: allowed calls run without a question, denied ones return an error", async () => {
  const rules = [
    { tool: "execute", command: "echo", action: "allow" },
    { tool: "execute", action: "deny" },
  ];
  const permissions = { default: "ask_changes", rules };
  const { id } = await startAgentChat(world, "run echo fine\nrun touch never\nsay done", { permissions });
  await waitForStatus(id, "waiting");
  expect(await describeMessages(id)).toEqual([
    expect.stringContaining("user:"),
    "assistant: execute",
    'tool: {"output":"fine\\n","success":true}',
    "assistant: execute",
    expect.stringContaining("The rules of this chat do not allow this call"),
    "assistant: done",
  ]);
  expect(existsSync(join(home, "never"))).toBe(false);
  expect(readAgentLog(world, id).slice(-2)).toEqual(["answered yes", "answered no"]);
});

test("[CA-2] a denied call is reported to the agent as an error, and an always answer becomes a rule", async () => {
  const { id } = await startAgentChat(world, "run echo one\nrun echo two three\nsay done", ASKS);
  await answer(id, "deny");
  await answer(id, "allow", { scope: "always" });
  await waitForStatus(id, "waiting");
  expect(readAgentLog(world, id).slice(-2)).toEqual(["answered no", "answered yes"]);
  const { permissions } = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  expect(permissions?.rules).toEqual([{ tool: "execute", command: "echo two", action: "allow" }]);
  await sendMessage(world, id, "run echo two four");
  await until(async () => (await describeMessages(id)).some((one) => one.includes("four\\n")));
});

test("[CA-4] files that the agent writes through its client require approval like its own edits", async () => {
  const { id } = await startAgentChat(world, "write through", ASKS);
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  expect(readFileSync(join(home, "through"), "utf8")).toBe("by the client");
  const denied = { permissions: { default: "allow", rules: [{ tool: "write_file", action: "deny" }] } };
  const other = await startAgentChat(world, "write refused", denied);
  await waitForStatus(other.id, "waiting");
  expect(existsSync(join(home, "refused"))).toBe(false);
  expect((await describeMessages(other.id)).at(-1)).toBe("assistant: not written");
});

test("[CA-18] an approval applies to the command that the person saw, even when the agent reuses the call's ID", async () => {
  for (const verb of ["same", "together"]) {
    const { id } = await startAgentChat(world, `${verb} ls; rm -rf /home`, ASKS);
    const asked = async (command: string) => {
      const calls = await until(async () => {
        const pending = await listPendingCalls(world.owner, id);
        return pending.length > 0 && pending;
      });
      expect(calls.map(({ args }) => args)).toEqual([{ command }]);
    };
    await asked("ls");
    await answer(id, "allow");
    await until(() => readAgentLog(world, id).at(-1) === "ls: yes");
    await asked("rm -rf /home");
    expect(readAgentLog(world, id).at(-1)).toBe("ls: yes");
    await answer(id, "deny");
    await waitForStatus(id, "waiting");
    expect(readAgentLog(world, id).slice(-2)).toEqual(["ls: yes", "rm -rf /home: no"]);
  }
});

test("[CA-31] a second call is asked about although the first, allowed one has no result yet", async () => {
  const { id } = await startAgentChat(world, "apart ls; rm -rf /home\nsay done", ASKS);
  const path = `/api/v2/chats/${id}/permissions`;
  type Calls = { readonly calls: readonly { readonly tool_call_id: string; readonly args: string }[] };
  for (const [command, decision] of [
    ["ls", "allow"],
    ["rm -rf /home", "deny"],
  ]) {
    const { calls } = await until(async () => {
      const found = await world.owner.get<Calls>(path);
      return found.calls.length > 0 && found;
    });
    expect(calls.map(({ args }) => JSON.parse(args) as unknown)).toEqual([{ command }]);
    await world.owner.post<unknown>(path, { answers: [{ tool_call_id: calls[0]?.tool_call_id, decision }] });
  }
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).join()).toContain("done");
  expect(readAgentLog(world, id).slice(-2)).toEqual(["ls: yes", "rm -rf /home: no"]);
});

test("[CA-18] a reused ID is asked about again in the next turn, and a request that cannot be shown is not asked", async () => {
  const { id } = await startAgentChat(world, "same ls", ASKS);
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  await sendMessage(world, id, "same whoami\nforeign hidden\nsay done");
  await answer(id, "deny");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: done");
  expect(readAgentLog(world, id).slice(-3)).toEqual(["whoami: no", "hidden: cancelled", "not written"]);
  expect((await describeMessages(id)).slice(3).join()).not.toContain("assistant: hidden");
  expect(existsSync(join(home, "hidden"))).toBe(false);
});

test("[CA-4] an approved edit lets the agent write what the person saw, once; a denied one allows no write", async () => {
  const text = (content: string) => `edit seen ${content}\nwrite seen`;
  const denied = await startAgentChat(world, text("one"), ASKS);
  await answer(denied.id, "deny");
  await until(async () =>
    (await listPendingCalls(world.owner, denied.id)).some(({ tool_name }) => tool_name === "write_file"),
  );
  await answer(denied.id, "deny");
  await waitForStatus(denied.id, "waiting");
  expect(existsSync(join(home, "seen"))).toBe(false);
  const allowed = await startAgentChat(world, text("one"), ASKS);
  await answer(allowed.id, "allow");
  await until(async () => {
    const [call] = await listPendingCalls(world.owner, allowed.id);
    return call?.args !== undefined && JSON.stringify(call.args).includes("by the client");
  });
  await answer(allowed.id, "deny");
  await waitForStatus(allowed.id, "waiting");
  expect(readFileSync(join(home, "seen"), "utf8")).toBe("one\n");
  const through = await startAgentChat(world, "through seen two", ASKS);
  await answer(through.id, "allow");
  await waitForStatus(through.id, "waiting");
  expect(readFileSync(join(home, "seen"), "utf8")).toBe("two\n");
});

test("[CA-19] edits and writes in accept_edits mode ask if symbolic links lead out of the folder, and show the real path", async () => {
  using elsewhere = tempDirectory();
  const outside = realpathSync(elsewhere.path);
  writeFileSync(join(outside, "there"), "before\n");
  symlinkSync(outside, join(home, "lnk"));
  symlinkSync(join(outside, "there"), join(home, "filelink"));
  symlinkSync(join(outside, "absent"), join(home, "dangling"));
  const permissions = { default: "accept_edits", rules: [] };
  const inside = await startAgentChat(world, "write plain\nedit plain two", { permissions });
  await waitForStatus(inside.id, "waiting");
  expect(readFileSync(join(home, "plain"), "utf8")).toBe("two\n");
  const cases = [
    ["write lnk/x", "x"],
    ["put lnk/rel", "rel"],
    ["write filelink", "there"],
    ["write dangling", "absent"],
    ["edit lnk/y new", "y"],
    ["edit filelink new", "there"],
    ["edit dangling new", "absent"],
  ] as const;
  const { id } = await startAgentChat(world, cases.map(([text]) => text).join("\n"), { permissions });
  for (const [text, name] of cases) {
    const real = join(outside, name);
    const [call] = await until(
      async () => {
        const calls = await listPendingCalls(world.owner, id);
        return calls.some(({ args }) => JSON.stringify(args).includes(real)) && calls;
      },
      { what: text },
    );
    await world.owner.post<unknown>(`/api/v2/chats/${id}/permissions`, {
      answers: [{ tool_call_id: call?.tool_call_id, decision: text === "write lnk/x" ? "allow" : "deny" }],
    });
    await until(async () =>
      (await listPendingCalls(world.owner, id)).every((one) => one.tool_call_id !== call?.tool_call_id),
    );
  }
  await waitForStatus(id, "waiting");
  expect(readdirSync(outside).toSorted()).toEqual(["there", "x"]);
  expect(readFileSync(join(outside, "x"), "utf8")).toBe("by the client");
  expect(readFileSync(join(outside, "there"), "utf8")).toBe("before\n");
});

test("[CA-5] an interruption cancels the agent's turn, keeps its output until it ends, and the next message goes to the same agent", async () => {
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
  const script = 'echo ran >> "$HOME/slow"; while [ ! -e "$HOME/go" ]; do sleep 0.05; done';
  await configureAgent(world, "slow", { install_script: script });
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

test("[CA-16] attachments reach the agent: text as text, images and documents in its supported form, and a note for the rest", async () => {
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
    const [, ...given] = readAgentLog(world, id).slice(
      readAgentLog(world, id).findLastIndex((line) => line.startsWith("prompt")),
    );
    const prompt = readAgentLog(world, id).findLast((line) => line.startsWith("prompt")) ?? "";
    expect(prompt).toContain("remember the milk");
    if (coding_agent === "test") {
      expect(given).toEqual([
        `image image/png ${Buffer.from(DOT, "base64").length}`,
        "resource attachment:///paper.pdf application/pdf %PDF-1.4 paper",
      ]);
    } else {
      expect(given).toEqual([]);
      expect(prompt).toContain('The agent cannot display the attached image \\"dot.png\\".');
      expect(prompt).toContain('The agent cannot read the attached file \\"paper.pdf\\".');
    }
  }
});

test("[CA-17] the agent's mode follows the chat's with each message, and a plan mode that it has left is set again", async () => {
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
  const chosen = [
    ["mode", "careful", choices.mode],
    ["model", "large", choices.model],
  ];
  expect(await listOptions()).toEqual(chosen);
  await sendMessage(world, id, "say two");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: two");
  expect(readAgentLog(world, id).slice(-3)).toEqual(["mode careful", "model large", 'prompt "say two"']);
  killAgents(id);
  await until(() => findAgentProcesses(id).length === 0);
  await sendMessage(world, id, "leave default\nsay three");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: three");
  expect(readAgentLog(world, id)).toContain("load");
  expect(readAgentLog(world, id).filter((line) => line === "model large")).toHaveLength(2);
  expect(await listOptions()).toEqual(chosen);
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

test("[CA-24] commands that the agent runs through its client follow the chat's rules, and the call that shows the terminal has their output", async () => {
  const rules = [
    { tool: "execute", command: "printf", action: "allow" },
    { tool: "execute", command: "touch", action: "deny" },
  ];
  const permissions = { default: "ask_changes", rules };
  const text = "term printf 'one two three four'\nterm touch denied\nterm printenv GIVEN\ntermask mkdir made\nsay done";
  const { id } = await startAgentChat(world, text, { permissions });
  const asked = async () => (await until(async () => (await listPendingCalls(world.owner, id)).at(0)))?.args;
  expect(await asked()).toEqual({ command: "env 'GIVEN=a b' sh -c 'printenv GIVEN'", workdir: home });
  await answer(id, "allow");
  await until(async () => JSON.stringify(await asked()).includes("mkdir made"));
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  const lines = await describeMessages(id);
  expect(lines.join("\n")).toContain('{"output":"one two three four","success":true}');
  expect(lines.join("\n")).toContain('"output":"a b\\n","success":true,"exit_code":0');
  expect(lines.at(-1)).toBe("assistant: done");
  expect(readAgentLog(world, id).filter((line) => line.startsWith("terminal"))).toEqual([
    'terminal 0 true "e two three four"',
    'terminal 0 false "a b\\n"',
    'terminal 0 false ""',
  ]);
  expect(existsSync(join(home, "denied"))).toBe(false);
  expect(existsSync(join(home, "made"))).toBe(true);
});

test("[CA-24] commands that the client runs for an agent end when the turn is interrupted", async () => {
  const mark = `sleep ${60_000 + process.pid}`;
  const { id } = await startAgentChat(world, `termwait ${mark}`, FREE);
  const isProgramRunning = () => Bun.spawnSync(["pgrep", "-fx", mark]).stdout.toString().trim() !== "";
  await until(isProgramRunning);
  await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
  await until(() => !isProgramRunning());
  await waitForStatus(id, "waiting");
});

test("[CA-14] the home of a deleted chat's agent is removed, within a day if the workspace was unreachable", async () => {
  const homes = join(home, ".local/state/slipway/coding-agents/homes");
  const { id } = await startAgentChat(world, "wait", FREE);
  await until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
  await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
  await waitForStatus(id, "waiting");
  expect(findAgentProcesses(id).length).toBeGreaterThan(0);
  await world.owner.delete(`/api/v2/chats/${id}`);
  await until(() => !existsSync(join(homes, id)) && findAgentProcesses(id).length === 0);
  const deleted = join(homes, "00000000-0000-4000-8000-000000000000");
  mkdirSync(deleted);
  const yesterday = new Date(Date.now() - 25 * 3_600_000);
  utimesSync(join(home, ".local/state/slipway/checkpoints/tidied"), yesterday, yesterday);
  const other = await startAgentChat(world, "say x", FREE);
  await until(() => !existsSync(deleted));
  expect(existsSync(join(homes, other.id))).toBe(true);
});

test("[CA-6] a killed agent is restarted and loads its session; nothing is stored twice", async () => {
  const { id } = await startAgentChat(world, "say first", FREE);
  await waitForStatus(id, "waiting");
  killAgents(id);
  await until(() => findAgentProcesses(id).length === 0);
  await sendMessage(world, id, "say second");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: second");
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

test("[CA-6] an agent that dies while a call waits is restarted; the call returns an error and the agent continues", async () => {
  const { id } = await startAgentChat(world, "run echo lost", ASKS);
  await until(async () => (await listPendingCalls(world.owner, id)).length > 0);
  killAgents(id);
  await until(() => findAgentProcesses(id).length === 0);
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).join("\n")).toContain("The agent was restarted before this call had a result.");
  expect(readAgentLog(world, id).at(-1)).toContain("continue where you left off");
});

test("[CA-6] an agent that is killed while it answers or runs a command is restarted and continues", async () => {
  for (const text of ["wait", "free touch begun; sleep 60"]) {
    const { id } = await startAgentChat(world, text, FREE);
    await until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
    if (text !== "wait") await until(() => existsSync(join(home, "begun")));
    killAgents(id);
    await waitForStatus(id, "waiting");
    expect(readAgentLog(world, id).at(-1)).toContain("continue where you left off");
    if (text !== "wait")
      expect((await describeMessages(id)).join("\n")).toContain("restarted before this call had a result");
  }
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

test("[CA-7] an agent that dies while it loads its session gets a new one with the conversation", async () => {
  await configureAgent(world, "fragile", { variables: { TEST_AGENT_DIES_LOADING: "1" } });
  const { id } = await startAgentChat(world, "say first", { coding_agent: "fragile", permissions: null });
  await waitForStatus(id, "waiting");
  killAgents(id);
  await until(() => findAgentProcesses(id).length === 0);
  await sendMessage(world, id, "say second");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: second");
  expect(readAgentLog(world, id).at(-1)).toContain("<conversation>");
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings.join()).toContain("could not load its session");
});

test("[CA-7] an agent that cannot load its session gets the conversation as text, and the chat says so", async () => {
  await configureAgent(world, "forgets", { variables: { TEST_AGENT_FORGETS: "1" } });
  const { id } = await startAgentChat(world, "say first", { coding_agent: "forgets", permissions: null });
  await waitForStatus(id, "waiting");
  killAgents(id);
  await until(() => findAgentProcesses(id).length === 0);
  await sendMessage(world, id, "say second");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: second");
  expect(readAgentLog(world, id).at(-1)).toContain("<conversation>");
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).warnings.join()).toContain("could not load its session");
});

test("[CA-8] an edited message starts a new session with everything before it and nothing that was edited away", async () => {
  const { id } = await startAgentChat(world, "say one", FREE);
  await waitForStatus(id, "waiting");
  await sendMessage(world, id, "say two");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: two");
  const messages = await listMessages(world.owner, id);
  const content = [{ type: "text", text: "say three" }];
  await world.owner.patch<unknown>(`/api/v2/chats/${id}/messages/${messages[2]?.id}`, { content });
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: three");
  const last = readAgentLog(world, id).at(-1) ?? "";
  expect(last).toContain("say one");
  expect(last).toContain("say three");
  expect(last).not.toContain("say two");
});

test(
  "[CA-9] a refused prompt, an agent that keeps crashing and one that cannot be installed fail the turn with an explanation",
  async () => {
    const getChatError = async (text: string, more: object = {}) => {
      const { id } = await startAgentChat(world, text, Object.assign({}, FREE, more));
      await waitForStatus(id, "error");
      return (await world.owner.get<Chat>(`/api/v2/chats/${id}`)).last_error;
    };
    const refused = await getChatError("fail this model is unknown");
    expect(refused).toMatchObject({
      message: "Test agent has failed.",
      detail: expect.stringContaining("this model is unknown"),
    });
    const script = "echo the mirror is away >&2; exit 3";
    await configureAgent(world, "broken", { display_name: "Broken", install_script: script });
    const broken = await getChatError("say x", { coding_agent: "broken" });
    expect(broken).toMatchObject({
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

test("[CA-6] a restarted server asks the same question; the agent is restarted, and a call that the agent no longer knows returns an error", async () => {
  const { id } = await startAgentChat(world, "run echo kept", ASKS);
  await until(async () => (await listPendingCalls(world.owner, id)).length > 0);
  await world.restart();
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).join("\n")).toContain("The agent was restarted before this call had a result.");
  expect(readAgentLog(world, id).filter((line) => line === "load")).toHaveLength(1);
});

test("[CA-6] a server that restarts during a turn continues it, also while an agent is being installed, and leaves no old agent behind", async () => {
  const script = 'echo ran >> "$HOME/later"; while [ ! -e "$HOME/finish" ]; do sleep 0.05; done';
  await configureAgent(world, "later", { install_script: script });
  const installing = await startAgentChat(world, "say installed", { coding_agent: "later", permissions: null });
  await until(() => existsSync(join(home, "later")));
  const { id } = await startAgentChat(world, "wait", FREE);
  await until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
  const before = findAgentProcesses(id);
  expect(before.length).toBeGreaterThan(0);
  await world.restart();
  writeFileSync(join(home, "finish"), "");
  await until(async () => (await describeMessages(installing.id)).at(-1) === "assistant: installed");
  expect(readFileSync(join(home, "later"), "utf8")).toBe("ran\n");
  await waitForStatus(id, "waiting");
  expect(readAgentLog(world, id).at(-1)).toContain("continue where you left off");
  expect(findAgentProcesses(id).filter((pid) => before.includes(pid))).toEqual([]);
});

test("[CA-6] a killed daemon ends its agents; the next daemon's agent continues the turn", async () => {
  const { id } = await startAgentChat(world, "wait", FREE);
  await until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
  const asking = await startAgentChat(world, "run echo asked", ASKS);
  await until(async () => (await listPendingCalls(world.owner, asking.id)).length > 0);
  const before = [...findAgentProcesses(id), ...findAgentProcesses(asking.id)];
  world.daemon.process.kill("SIGKILL");
  await world.daemon.process.exited;
  await using _daemon = await startAgentProcess(world.server, world.seeded, home);
  await waitForStatus(id, "waiting");
  await until(() => !findAgentProcesses(id).some((pid) => before.includes(pid)));
  expect(readAgentLog(world, id).at(-1)).toContain("continue where you left off");
  await answer(asking.id, "allow");
  await waitForStatus(asking.id, "waiting");
  expect((await describeMessages(asking.id)).join("\n")).toContain(
    "The agent was restarted before this call had a result.",
  );
  expect([...findAgentProcesses(id), ...findAgentProcesses(asking.id)].filter((pid) => before.includes(pid))).toEqual(
    [],
  );
});
