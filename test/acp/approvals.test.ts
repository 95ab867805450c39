// A coding agent's requests for approval, and the calls that an answer covers.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import {
  ASK_BEFORE_CHANGES,
  listPendingCalls,
  makeChatSteps,
  openAgentWorld,
  readAgentLog,
  startAgentChat,
} from "#test/support/acp/agent-world.ts";
import { sendMessage } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const world = await forFile(openAgentWorld());
const { home } = world;
const { waitForStatus, describeMessages, answer } = makeChatSteps(world);

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

test("[CA-2] a denied call is reported to the agent as an error, and an answer with the scope 'always' becomes a rule", async () => {
  const { id } = await startAgentChat(world, "run echo one\nrun echo two three\nsay done", ASK_BEFORE_CHANGES);
  await answer(id, "deny");
  await answer(id, "allow", { scope: "always" });
  await waitForStatus(id, "waiting");
  expect(readAgentLog(world, id).slice(-2)).toEqual(["answered no", "answered yes"]);
  const { permissions } = await world.owner.get<Chat>(`/api/v2/chats/${id}`);
  expect(permissions?.rules).toEqual([{ tool: "execute", command: "echo two", action: "allow" }]);
  await sendMessage(world, id, "run echo two four");
  await until(async () => (await describeMessages(id)).some((message) => message.includes("four\\n")));
});

test("[CA-4] files that the agent writes through its client require approval like its own edits", async () => {
  const { id } = await startAgentChat(world, "write through", ASK_BEFORE_CHANGES);
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  expect(readFileSync(join(home, "through"), "utf8")).toBe("by the client");
  const denyWrites = { permissions: { default: "allow", rules: [{ tool: "write_file", action: "deny" }] } };
  const deniedChat = await startAgentChat(world, "write refused", denyWrites);
  await waitForStatus(deniedChat.id, "waiting");
  expect(existsSync(join(home, "refused"))).toBe(false);
  expect((await describeMessages(deniedChat.id)).at(-1)).toBe("assistant: not written");
});

test("[CA-18] an approval applies to the command that the person saw, even when the agent reuses the call's ID", async () => {
  // Both verbs ask for two commands under one call ID: one after the other, and at the same time (see test/support/acp/agent.ts).
  for (const verb of ["same", "together"]) {
    const { id } = await startAgentChat(world, `${verb} ls; rm -rf /home`, ASK_BEFORE_CHANGES);
    const expectQuestion = async (command: string) => {
      const calls = await until(async () => {
        const pending = await listPendingCalls(world.owner, id);
        return pending.length > 0 && pending;
      });
      expect(calls.map(({ args }) => args)).toEqual([{ command }]);
    };
    await expectQuestion("ls");
    await answer(id, "allow");
    await until(() => readAgentLog(world, id).at(-1) === "ls: yes");
    await expectQuestion("rm -rf /home");
    expect(readAgentLog(world, id).at(-1)).toBe("ls: yes");
    await answer(id, "deny");
    await waitForStatus(id, "waiting");
    expect(readAgentLog(world, id).slice(-2)).toEqual(["ls: yes", "rm -rf /home: no"]);
  }
});

test("[CA-31] asks about a second call while the first, allowed one has no result yet", async () => {
  const { id } = await startAgentChat(world, "apart ls; rm -rf /home\nsay done", ASK_BEFORE_CHANGES);
  const path = `/api/v2/chats/${id}/permissions`;
  type Calls = { readonly calls: readonly { readonly tool_call_id: string; readonly args: string }[] };
  for (const [command, decision] of [
    ["ls", "allow"],
    ["rm -rf /home", "deny"],
  ]) {
    const { calls } = await until(async () => {
      const pending = await world.owner.get<Calls>(path);
      return pending.calls.length > 0 && pending;
    });
    expect(calls.map(({ args }) => JSON.parse(args) as unknown)).toEqual([{ command }]);
    await world.owner.post<unknown>(path, { answers: [{ tool_call_id: calls[0]?.tool_call_id, decision }] });
  }
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).join()).toContain("done");
  expect(readAgentLog(world, id).slice(-2)).toEqual(["ls: yes", "rm -rf /home: no"]);
});

test("[CA-18] asks again if the next turn reuses a call ID, and cancels requests that name another session", async () => {
  const { id } = await startAgentChat(world, "same ls", ASK_BEFORE_CHANGES);
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  await sendMessage(world, id, "same whoami\nforeign hidden\nsay done");
  await answer(id, "deny");
  await until(async () => (await describeMessages(id)).at(-1) === "assistant: done");
  expect(readAgentLog(world, id).slice(-3)).toEqual(["whoami: no", "hidden: cancelled", "not written"]);
  expect((await describeMessages(id)).slice(3).join()).not.toContain("assistant: hidden");
  expect(existsSync(join(home, "hidden"))).toBe(false);
});

test("[CA-4] an approved edit lets the agent write the content that the question showed, once; a denied edit allows no write", async () => {
  const toPrompt = (content: string) => `edit seen ${content}\nwrite seen`;
  const denied = await startAgentChat(world, toPrompt("one"), ASK_BEFORE_CHANGES);
  await answer(denied.id, "deny");
  await until(async () =>
    (await listPendingCalls(world.owner, denied.id)).some(({ tool_name }) => tool_name === "write_file"),
  );
  await answer(denied.id, "deny");
  await waitForStatus(denied.id, "waiting");
  expect(existsSync(join(home, "seen"))).toBe(false);
  const allowed = await startAgentChat(world, toPrompt("one"), ASK_BEFORE_CHANGES);
  await answer(allowed.id, "allow");
  await until(async () => {
    const [call] = await listPendingCalls(world.owner, allowed.id);
    return call?.args !== undefined && JSON.stringify(call.args).includes("by the client");
  });
  await answer(allowed.id, "deny");
  await waitForStatus(allowed.id, "waiting");
  expect(readFileSync(join(home, "seen"), "utf8")).toBe("one\n");
  const written = await startAgentChat(world, "through seen two", ASK_BEFORE_CHANGES);
  await answer(written.id, "allow");
  await waitForStatus(written.id, "waiting");
  expect(readFileSync(join(home, "seen"), "utf8")).toBe("two\n");
});

test("[CA-19] in accept_edits mode, edits through symbolic links to outside require approval and show the real path", async () => {
  using outsideDirectory = tempDirectory();
  const outside = realpathSync(outsideDirectory.path);
  writeFileSync(join(outside, "there"), "before\n");
  symlinkSync(outside, join(home, "lnk"));
  symlinkSync(join(outside, "there"), join(home, "filelink"));
  symlinkSync(join(outside, "absent"), join(home, "dangling"));
  const permissions = { default: "accept_edits", rules: [] };
  const insideChat = await startAgentChat(world, "write plain\nedit plain two", { permissions });
  await waitForStatus(insideChat.id, "waiting");
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
    const realPath = join(outside, name);
    const [call] = await until(
      async () => {
        const calls = await listPendingCalls(world.owner, id);
        return calls.some(({ args }) => JSON.stringify(args).includes(realPath)) && calls;
      },
      { what: text },
    );
    await world.owner.post<unknown>(`/api/v2/chats/${id}/permissions`, {
      answers: [{ tool_call_id: call?.tool_call_id, decision: text === "write lnk/x" ? "allow" : "deny" }],
    });
    await until(async () =>
      (await listPendingCalls(world.owner, id)).every(({ tool_call_id }) => tool_call_id !== call?.tool_call_id),
    );
  }
  await waitForStatus(id, "waiting");
  expect(readdirSync(outside).toSorted()).toEqual(["there", "x"]);
  expect(readFileSync(join(outside, "x"), "utf8")).toBe("by the client");
  expect(readFileSync(join(outside, "there"), "utf8")).toBe("before\n");
});

test("[CA-24] commands that the agent runs through its client follow the chat's rules, and calls show their output", async () => {
  const rules = [
    { tool: "execute", command: "printf", action: "allow" },
    { tool: "execute", command: "touch", action: "deny" },
  ];
  const permissions = { default: "ask_changes", rules };
  const text = "term printf 'one two three four'\nterm touch denied\nterm printenv GIVEN\ntermask mkdir made\nsay done";
  const { id } = await startAgentChat(world, text, { permissions });
  const getPendingArguments = async () =>
    (await until(async () => (await listPendingCalls(world.owner, id)).at(0)))?.args;
  expect(await getPendingArguments()).toEqual({ command: "env 'GIVEN=a b' sh -c 'printenv GIVEN'" });
  await answer(id, "allow");
  await until(async () => JSON.stringify(await getPendingArguments()).includes("mkdir made"));
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  const messages = await describeMessages(id);
  expect(messages.join("\n")).toContain('{"output":"one two three four","success":true}');
  expect(messages.join("\n")).toContain('"output":"a b\\n","success":true,"exit_code":0');
  expect(messages.at(-1)).toBe("assistant: done");
  expect(readAgentLog(world, id).filter((line) => line.startsWith("terminal"))).toEqual([
    'terminal 0 true "e two three four"',
    'terminal 0 false "a b\\n"',
    'terminal 0 false ""',
  ]);
  expect(existsSync(join(home, "denied"))).toBe(false);
  expect(existsSync(join(home, "made"))).toBe(true);
});

test("[CA-24] a command of the agent's client runs in the folder that the approval shows", async () => {
  mkdirSync(join(home, "scratch"));
  const permissions = { default: "ask_changes", rules: [] };
  const { id } = await startAgentChat(world, "termin scratch pwd\nsay done", { permissions });
  const asked = await until(async () => (await listPendingCalls(world.owner, id)).at(0));
  expect(asked.args).toEqual({ command: "pwd", workdir: join(home, "scratch") });
  await answer(id, "allow");
  await waitForStatus(id, "waiting");
  expect((await describeMessages(id)).join("\n")).toContain(`{"output":"${join(home, "scratch")}\\n"`);
});

test("[PE-13] a coding agent's running turn has the mode that its owner has just chosen", async () => {
  Bun.spawnSync(["mkfifo", join(home, "gate")]);
  const permissions = { default: "allow", rules: [{ tool: "execute", command: "cat", action: "allow" }] };
  const text = "term cat gate\nterm touch asked\nterm cat gate\nterm touch planned\nsay done";
  const { id } = await startAgentChat(world, text, { permissions });
  const path = `/api/v2/chats/${id}`;
  // Opening the gate waits for the agent's command.
  const pass = async (permission_mode: string) => {
    const gate = await open(join(home, "gate"), "w");
    await world.owner.patch<unknown>(path, { permission_mode });
    await gate.close();
  };
  await pass("ask");
  const asked = await until(async () => (await listPendingCalls(world.owner, id)).at(0));
  expect(asked.args).toEqual({ command: "touch asked" });
  await answer(id, "allow");
  await pass("plan");
  await waitForStatus(id, "waiting");
  expect(["asked", "planned"].map((name) => existsSync(join(home, name)))).toEqual([true, false]);
});
