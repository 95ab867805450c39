// Hooks that a workspace declares, run by a real daemon for chats of a real server.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { HookDispatch } from "#schema/chats/hook-dispatch.ts";
import { Client } from "#src/client.ts";
import { isAlive } from "#test/daemon/support/daemon.ts";
import { createChat, sendMessage } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { callTools, listMessages, openChat, openToolWorld, type ToolWorld } from "../tools/world.ts";
import { Consumer } from "./world.ts";

const HOOKS_ALLOWED = { SLIPWAY_WORKSPACE_HOOKS: "true" };
const SECRET_ENV = { DAEMON_ONLY_KEY: "canary-of-the-daemon" };
const world = await forFile(openToolWorld({ env: HOOKS_ALLOWED, agentEnv: SECRET_ENV }));

type Entry = { name: string; event: string; command: string; matcher?: string; timeout?: number };

const writeHooks = ({ home }: ToolWorld, text: string): void => {
  mkdirSync(join(home, ".slipway"), { recursive: true });
  writeFileSync(join(home, "hooks.new"), text);
  renameSync(join(home, "hooks.new"), join(home, ".slipway", "hooks.json"));
};
const declareHooks = (toolWorld: ToolWorld, ...hooks: Entry[]): void =>
  writeHooks(toolWorld, JSON.stringify({ version: 1, hooks }));
/** Returns a command that prints this answer. */
const makeAnswerCommand = (answer: unknown): string => `cat > /dev/null; printf '%s' '${JSON.stringify(answer)}'`;
const makeDenyCommand = (reason: string) => makeAnswerCommand({ permission: { decision: "deny", reason } });
const signInAdmin = ({ server }: ToolWorld) => new Client(server.url).signIn(ADMIN.email, ADMIN.password);
const listDispatches = async (toolWorld: ToolWorld, chat_id: string): Promise<HookDispatch[]> =>
  (
    await (
      await signInAdmin(toolWorld)
    ).get<{ dispatches: HookDispatch[] }>(`/api/v2/hooks/dispatches?chat_id=${chat_id}`)
  ).dispatches;
const readIfExists = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");

test("[HK-19] without the administrator's setting no hook of a workspace runs", async () => {
  await using disallowingWorld = await openToolWorld();
  const markerFile = join(disallowingWorld.home, "ran");
  declareHooks(disallowingWorld, { name: "all", event: "pre_tool_use", command: `touch ${markerFile}; exit 1` });
  const { call } = await openChat(disallowingWorld);
  const { results, next } = await callTools(disallowingWorld, call, ["execute", { command: "echo ran" }]);
  expect(results).toMatchObject([{ output: "ran\n" }]);
  expect(existsSync(markerFile)).toBe(false);
  next.finish("stop");
});

test("[HK-19] [HK-20] [HK-21] each event reaches its declared programs on standard input, and their answers control the chat", async () => {
  const log = join(world.home, "events");
  const recordCommand = `cat >> ${log}; echo >> ${log}`;
  const events = ["user_prompt_submit", "session_start", "post_tool_use", "stop", "pre_compact", "post_compact"];
  declareHooks(
    world,
    ...events.map((event) => ({ name: `record ${event}`, event, command: recordCommand })),
    { name: "environment", event: "session_start", command: `env > ${join(world.home, "environment")}` },
    { name: "record pre", event: "pre_tool_use", command: recordCommand },
    {
      name: "polite",
      event: "user_prompt_submit",
      command: makeAnswerCommand({
        permission: { decision: "allow", input_override: { prompt: "go, please" } },
        model_context: "CTX-PROMPT",
        user_message: "note of prompt",
      }),
    },
    {
      name: "other command",
      event: "pre_tool_use",
      matcher: "execute",
      command: makeAnswerCommand({ permission: { decision: "allow", input_override: { command: "echo chosen" } } }),
    },
    { name: "no lists", event: "pre_tool_use", matcher: "list_templates", command: makeDenyCommand("Not here.") },
    { name: "after", event: "post_tool_use", command: makeAnswerCommand({ model_context: "CTX-POST" }) },
  );
  const { id, call } = await openChat(world);
  expect(call.prompt).toContain("go, please");
  expect(call.prompt).toContain("CTX-PROMPT");
  const { results, next } = await callTools(world, call, ["execute", { command: "echo asked" }], ["list_templates"]);
  expect(results.slice(0, 2)).toMatchObject([
    { error: 'The hook "no lists" of the workspace does not allow this. Not here.' },
    { output: "chosen\n" },
  ]);
  expect(JSON.stringify(next.request.messages)).toContain("CTX-POST");
  next.finish("stop");
  const shown = await until(async () => {
    const messages = await listMessages(world.owner, id);
    return messages.at(-1)?.content.some(({ text }) => text === "Done.") && messages;
  });
  expect(JSON.stringify(shown)).not.toContain("CTX-");
  expect(JSON.stringify(shown)).toContain("note of prompt");
  const toolCalls = shown.flatMap(({ content }) => content).filter(({ type }) => type === "tool-call");
  expect(toolCalls[0]).toMatchObject({ args: { command: "echo chosen" }, hook_rewritten: true });
  await until(async () => (await world.owner.get<{ status: string }>(`/api/v2/chats/${id}`)).status === "waiting");
  await world.owner.post(`/api/v2/chats/${id}/compact`);
  (await world.models.next()).say("NOTES").finish("stop");
  await until(() => readIfExists(log).includes('"post_compact"'));

  const requests = readIfExists(log)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { type: string; meta: Record<string, unknown>; data: Record<string, unknown> });
  expect(requests.map(({ type }) => type)).toEqual([
    ...["user_prompt_submit", "session_start", "pre_tool_use", "pre_tool_use", "post_tool_use", "stop"],
    ...["pre_compact", "post_compact"],
  ]);
  expect(requests[0]).toMatchObject({ meta: { chat_id: id, schema_version: 1 }, data: { prompt: "go" } });
  expect(requests[2]?.data).toEqual({
    tool_use_id: "call-0",
    tool_name: "execute",
    tool_input: { command: "echo asked" },
  });
  // The daemon's environment, which contains its token, is not passed on.
  const environment = readIfExists(join(world.home, "environment"));
  expect(environment).toMatch(/^SLIPWAY_HOOK_NAME=environment$/m);
  expect(environment).not.toMatch(/canary-of-the-daemon|TOKEN/);

  const dispatches = await listDispatches(world, id);
  expect(dispatches.every(({ source, mode }) => source === "workspace" && mode === "enforce")).toBe(true);
  expect(
    dispatches
      .filter(({ result }) => result !== "none")
      .map(({ event, result, tool_name }) => [event, result, tool_name])
      .reverse(),
  ).toEqual([
    ["user_prompt_submit", "rewrite", undefined],
    ["pre_tool_use", "rewrite", "execute"],
    ["pre_tool_use", "deny", "list_templates"],
  ]);
  type Entries = { audit_logs: { status_code: number; additional_fields: Record<string, unknown> }[] };
  const audit = await (await signInAdmin(world)).get<Entries>(`/api/v2/audit?q=resource_id:${id}&limit=50`);
  const entries = audit.audit_logs.flatMap(({ additional_fields: fields, status_code }) =>
    fields.hook_source === "workspace" ? [[fields.hook_event, fields.hook_result, status_code]] : [],
  );
  expect(entries).toContainEqual(["pre_tool_use", "deny", 403]);
});

const FAILURES: [string, Omit<Entry, "name" | "event">, string, RegExp][] = [
  ["fails", { command: "exit 3" }, "program_failed", /exited with code 3/],
  ["is missing", { command: "no-such-program-here" }, "program_failed", /exited with code 127/],
  ["is too slow", { command: "echo $$ > ~/late; trap '' TERM; sleep 30", timeout: 0.3 }, "timeout", /in time/],
  ["writes too much", { command: "head -c 70000 /dev/zero; sleep 30" }, "protocol_error", /64 KiB/],
  ["prints no JSON", { command: "echo yes" }, "protocol_error", /not JSON/],
  ["has an unknown member", { command: makeAnswerCommand({ allowed: true }) }, "protocol_error", /unknown member/],
  [
    "permits without an input",
    { command: makeAnswerCommand({ permission: { decision: "allow" } }) },
    "protocol_error",
    /input_override/,
  ],
];
for (const [fault, entry, failure, message] of FAILURES) {
  test(`[HK-20] [HK-21] a hook that ${fault} denies the call`, async () => {
    declareHooks(world, { name: "bad", event: "pre_tool_use", ...entry });
    const markerFile = join(world.home, "must-not-run");
    const { id, call } = await openChat(world);
    const { results, next } = await callTools(world, call, ["execute", { command: `touch ${markerFile}` }]);
    expect(results[0]?.error).toMatch(/The hook "bad" of the workspace failed/);
    expect(results[0]?.error).toMatch(message);
    expect(existsSync(markerFile)).toBe(false);
    expect(await listDispatches(world, id)).toMatchObject([
      { event: "pre_tool_use", result: failure, tool_name: "execute" },
    ]);
    // The chat continues: the model can try something else, and people can fix the file.
    rmSync(join(world.home, ".slipway", "hooks.json"));
    const repaired = await callTools(world, next, ["execute", { command: "echo repaired" }]);
    expect(repaired.results).toMatchObject([{ output: "repaired\n" }]);
    repaired.next.finish("stop");
  });
}

test("[TO-21] secrets are masked in the texts of a workspace's hook, and not in the arguments that it sets", async () => {
  const secret = "HookSecret-aaaa1111";
  await world.owner.post("/api/v2/users/me/secrets", { name: "hook", value: `${secret}\nSecondLine-bbbb2222` });
  const input_override = { command: `echo ${secret} | wc -c` };
  declareHooks(
    world,
    {
      name: "prompt",
      event: "user_prompt_submit",
      command: makeAnswerCommand({ model_context: `key ${secret}`, user_message: `note ${secret}` }),
    },
    {
      name: "command",
      event: "pre_tool_use",
      matcher: "execute",
      command: makeAnswerCommand({ permission: { decision: "allow", input_override } }),
    },
    { name: "no lists", event: "pre_tool_use", matcher: "list_templates", command: makeDenyCommand(`Not ${secret}.`) },
  );
  const { id, call } = await openChat(world);
  expect(call.prompt).toContain("key [hidden]");
  const { results, next } = await callTools(world, call, ["execute", { command: "echo" }], ["list_templates"]);
  expect(results).toMatchObject([{ error: expect.stringContaining("Not [hidden].") }, { output: "20\n" }]);
  next.finish("stop");
  const shown = await listMessages(world.owner, id);
  const content = shown.flatMap(({ content }) => content).filter(({ type }) => type !== "tool-call");
  expect(JSON.stringify(content)).not.toContain(secret);
});

test("[HK-20] processes that a hook has started end with the hook, even if they ignore signals", async () => {
  const markerFile = join(world.home, "started");
  const command = `trap '' TERM; (sleep 60 & echo $! > ${markerFile}.child); echo $$ > ${markerFile}; sleep 60`;
  declareHooks(world, { name: "stays", event: "pre_tool_use", timeout: 0.3, command });
  const { call } = await openChat(world);
  const { next } = await callTools(world, call, ["list_templates"]);
  const [parent, child] = [markerFile, `${markerFile}.child`].map((path) => Number(readIfExists(path)));
  expect([Number(parent) > 0, Number(child) > 0]).toEqual([true, true]);
  await until(() => !isAlive(Number(parent)) && !isAlive(Number(child)));
  // The processes of a hook that ends in time are ended too.
  declareHooks(world, {
    name: "forks",
    event: "pre_tool_use",
    command: `sleep 60 > /dev/null & echo $! > ${markerFile}`,
  });
  const secondRun = await callTools(world, next, ["list_templates"]);
  expect(secondRun.results[0]?.error).toBeUndefined();
  await until(() => !isAlive(Number(readIfExists(markerFile))));
  secondRun.next.finish("stop");
  rmSync(join(world.home, ".slipway", "hooks.json"));
});

test("[HK-21] an unreadable hooks file denies every call and every prompt, with an explanation", async () => {
  for (const text of [
    "{",
    '{"version":2,"hooks":[]}',
    '{"version":1,"hooks":[{"name":"x","event":"any","command":"true"}]}',
    '{"version":1,"hooks":[{"name":"x","event":"stop","command":"true","extra":1}]}',
    '{"version":1,"hooks":[{"name":"x","event":"stop","command":"true","timeout":6}]}',
    '{"version":1,"hooks":[{"name":"x","event":"stop","command":"true","matcher":"execute"}]}',
  ]) {
    writeHooks(world, text);
    const body = { content: [{ type: "text", text: "hi" }], workspace_id: world.seeded.workspace_id };
    const response = await world.owner.fetch("POST", "/api/v2/chats", {
      organization_id: world.organization_id,
      ...body,
    });
    const refusal = (await response.json()) as { message: string; kind: string };
    expect([text, response.status, refusal.kind, refusal.message]).toEqual([
      ...[text, 403, "hook_denied"],
      expect.stringContaining("The hooks of the workspace cannot be asked: .slipway/hooks.json"),
    ]);
  }
  rmSync(join(world.home, ".slipway", "hooks.json"));
});

test("[HK-21] for events that cannot be denied, people are notified of a failing hook, and the turn continues", async () => {
  declareHooks(world, { name: "odd", event: "session_start", command: "exit 1" });
  const { id, call } = await openChat(world);
  call.finish("stop");
  await until(async () =>
    JSON.stringify(await listMessages(world.owner, id)).includes('The hook \\"odd\\" of the workspace failed'),
  );
  rmSync(join(world.home, ".slipway", "hooks.json"));
});

test("[HK-21] while the agent is disconnected, calls that need the workspace are denied, and calls that start it are not", async () => {
  await using ownWorld = await openToolWorld({ env: HOOKS_ALLOWED });
  declareHooks(ownWorld, { name: "all", event: "pre_tool_use", command: makeDenyCommand("Never.") });
  const { call } = await openChat(ownWorld);
  const denied = await callTools(ownWorld, call, ["list_templates"]);
  expect(denied.results[0]?.error).toContain("Never.");
  await ownWorld.daemon[Symbol.asyncDispose]();
  const disconnected = await callTools(ownWorld, denied.next, ["list_templates"], ["execute", { command: "true" }]);
  expect(disconnected.results.map(({ error = "" }) => error.slice(0, 43))).toContain(
    "The hooks of the workspace cannot be asked: ".slice(0, 43),
  );
  expect(JSON.stringify(disconnected.results)).toContain('"templates"');
  disconnected.next.finish("stop");
});

testNeeding(
  [needs.python3],
  "[HK-22] the deployment's consumer decides last: it gets the input with the changes of the workspace's hooks",
  async () => {
    await using consumer = await Consumer.start();
    await using worldWithConsumer = await openToolWorld({ env: { ...HOOKS_ALLOWED, ...consumer.env() } });
    declareHooks(worldWithConsumer, {
      name: "worse",
      event: "pre_tool_use",
      command: makeAnswerCommand({ permission: { decision: "allow", input_override: { command: "curl evil" } } }),
    });
    await consumer.rule({ event: "pre_tool_use", answer: { permission: { decision: "deny", reason: "No network." } } });
    const chat = await createChat(worldWithConsumer, "go", { workspace_id: worldWithConsumer.seeded.workspace_id });
    const { results, next } = await callTools(worldWithConsumer, await worldWithConsumer.models.next(), [
      "execute",
      { command: "ls" },
    ]);
    expect(results[0]?.error).toContain("No network.");
    const [received] = await consumer.listReceived("pre_tool_use");
    expect(received?.request.data.tool_input).toEqual({ command: "curl evil" });
    next.finish("stop");
    await sendMessage(worldWithConsumer, chat.id, "again");
    (await worldWithConsumer.models.next()).finish("stop");
  },
);
