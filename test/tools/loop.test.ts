// The loop around the tools: invalid calls, client tools next to the server's own, workspaces that disappear, and a server restart.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sample } from "#actors/chat/machine/print-table.ts";
import { transition } from "#actors/chat/machine/state.ts";
import { updateBy } from "#db/engine/sql.ts";
import { workspaces } from "#db/schema/workspaces.ts";
import { findUserByName } from "#db/users/users.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { startAgentProcess } from "#test/api/agents/reach.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { callTools, Follower, joinOutput, listMessages, openChat, openToolWorld } from "./world.ts";

/** Returns true while a process with this ID exists. */
const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);
const updateWorkspace = updateBy(workspaces, workspaces.id);
const WORKSPACE_TOOLS = "read_file write_file edit_files execute process_output process_list process_signal".split(" ");

test("[TO-12] a chat has only suitable tools: none for workspaces without a workspace, and read-only tools in plan mode", async () => {
  await using world = await openToolWorld();
  const { id, call } = await openChat(world);
  const listToolNames = ({ request }: typeof call): string[] => request.tools.map(({ name }) => name);
  expect(listToolNames(call)).toEqual(expect.arrayContaining(WORKSPACE_TOOLS));
  for (const { description, input_schema } of call.request.tools) {
    expect(description.length).toBeGreaterThan(20);
    expect(input_schema).toMatchObject({ type: "object" });
  }
  // The chat enters plan mode during the model call, so tools that were offered before are now refused.
  await world.owner.patch(`/api/v2/chats/${id}`, { plan_mode: "plan" });
  const { results, next } = await callTools(
    world,
    call,
    ["write_file", { path: "a", content: "b" }],
    ["process_list", {}],
  );
  expect(results).toMatchObject([
    { error: expect.stringContaining("only its plan may be written") },
    { error: expect.stringContaining("cannot be used in this chat now") },
  ]);
  const planModeTools = ["read_file", "write_file", "edit_files", "execute", "process_output"];
  expect(listToolNames(next).filter((name) => WORKSPACE_TOOLS.includes(name))).toEqual(planModeTools);
  const withoutWorkspace = await openChat(world, { workspace_id: undefined });
  expect(listToolNames(withoutWorkspace.call).filter((name) => WORKSPACE_TOOLS.includes(name))).toEqual([]);
});

test("[TO-7] the model receives an error for unknown tools and invalid arguments, and continues", async () => {
  await using world = await openToolWorld();
  const { call } = await openChat(world);
  const { results, parts } = await callTools(
    world,
    call,
    ["conjure", {}],
    ["execute", { cmd: "true" }],
    ["execute", { input: '{"command": "tru' }],
    ["execute", { command: "true", timeout: "soon" }],
    ["execute", { command: "true", workdir: "/nowhere" }],
    ["read_file", { path: "a", offset: 0 }],
  );
  expect(parts.every(({ type }) => type === "tool-result")).toBe(true);
  expect(parts.filter(({ is_error }) => is_error === true)).toHaveLength(5);
  const errors = results.map(({ error, output }) => error ?? output);
  expect(errors).toEqual([
    expect.stringContaining('no tool "conjure"'),
    expect.stringContaining("The arguments do not fit. "),
    expect.stringContaining("They are not complete JSON"),
    expect.stringContaining("is not a duration"),
    expect.stringContaining("cannot be started"),
    expect.stringContaining("offset: "),
  ]);
});

test("[TO-30] nearly valid arguments are repaired once for rules, history and tool, and the result reports the repair", async () => {
  await using world = await openToolWorld();
  const { id, call } = await openChat(world);
  const permissions = { default: "allow", rules: [{ tool: "execute", command: "touch", action: "deny" }] };
  await world.owner.patch<unknown>(`/api/v2/chats/${id}`, { permissions });
  const { results, next } = await callTools(
    world,
    call,
    ["execute", { command: "echo 1", run_in_background: "false" }],
    ["execute", JSON.stringify({ command: "touch here", reason: "none" })],
    ["write_file", { path: "n.txt", content: 42, mode: "w" }],
    ["execute", { command: "echo 2", timeout: 5 }],
    ["execute", { command: "sleep 20", timeout: "0.2" }],
    ["process_output", { process_id: "none", wait_timeout: 1 }],
  );
  expect(results).toMatchObject([
    { output: "1\n", arguments_note: '"run_in_background" was taken as the boolean false.' },
    { error: expect.stringContaining("rules") },
    { arguments_note: expect.stringContaining('"mode" is unknown and was ignored.') },
    {
      output: "2\n",
      arguments_note: '"timeout" was taken as text.',
      timeout_note: '"timeout" has no unit: 5 was taken as 5 seconds.',
    },
    { error: expect.stringContaining("after 0.2 s"), timeout_note: expect.stringContaining("0.2 seconds") },
    { error: expect.stringContaining("No process has this id") },
  ]);
  expect(readFileSync(join(world.home, "n.txt"), "utf8")).toBe("42");
  const calls = (await listMessages(world.owner, id)).flatMap(({ content }) => content.filter(({ args }) => args));
  expect(calls.map(({ args }) => args)).toEqual([
    { command: "echo 1", run_in_background: false },
    { command: "touch here" },
    { path: "n.txt", content: "42" },
    { command: "echo 2", timeout: "5" },
    { command: "sleep 20", timeout: "0.2" },
    { process_id: "none", wait_timeout: "1" },
  ]);
  expect(JSON.stringify(calls)).not.toContain("slipway_call");
  next.say("done").finish();
});

test("[TO-14] the server's tools run before the client's are requested; a client tool with a server tool's name is never requested", async () => {
  await using world = await openToolWorld();
  const ask = { name: "ask", description: "asks", input_schema: { type: "object" } };
  const { id, call } = await openChat(world, { unsafe_dynamic_tools: [ask, { ...ask, name: "execute" }] });
  expect(call.request.tools.filter(({ name }) => name === "execute")).toHaveLength(1);
  using follower = await Follower.open(world.owner, id);
  call
    .callTool("one", "execute", { command: "echo hi", timeout: "60s" })
    .callTool("two", "ask", {})
    .finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  const requested = follower.events.flatMap((event) =>
    event.type === "action_required" ? [event.action_required] : [],
  );
  expect(requested).toMatchObject([{ tool_calls: [{ tool_call_id: "two" }] }]);
  await world.owner.post(`/api/v2/chats/${id}/tool-results`, {
    results: [{ tool_call_id: "two", output: "yes", is_error: false }],
  });
  const next = await world.models.next();
  const results = next.request.messages.flatMap(({ role, content }) => (role === "tool" ? content : []));
  expect(results).toMatchObject([
    { tool_call_id: "one", result: { output: "hi\n" } },
    { tool_call_id: "two", result: "yes" },
  ]);
});

test("[TO-6] the model learns that a workspace failed or is dormant, deleted or unreachable, and the chat continues", async () => {
  await using world = await openToolWorld();
  const { call } = await openChat(world);
  const { store, clock } = getContext(world.server);
  const id = world.seeded.workspace_id;
  const read = ["read_file", { path: "a" }] as const;
  await store.commit([updateWorkspace(id, { dormant_at: clock.now() })]);
  const dormant = await callTools(world, call, read);
  expect(dormant.results).toMatchObject([{ error: expect.stringContaining("dormant") }]);
  await store.commit([updateWorkspace(id, { dormant_at: null })]);
  await world.daemon[Symbol.asyncDispose]();
  const unreachableCall = await callTools(world, dormant.next, read, ["execute", { command: "true" }]);
  const unreachable = { error: expect.stringContaining("cannot be reached") };
  expect(unreachableCall.results).toMatchObject([unreachable, unreachable]);
  const admin = await store.get(findUserByName({ username: ADMIN.username }));
  await store.commit([updateWorkspace(id, { owner_id: admin?.id ?? "" })]);
  const forbidden = await callTools(world, unreachableCall.next, read);
  expect(forbidden.results).toMatchObject([{ error: expect.stringContaining("may no longer use") }]);
  await store.commit([updateWorkspace(id, { owner_id: world.seeded.owner_id })]);
  // The latest build has created no agent. A stopped workspace would be started (WO-9).
  await store.commit([updateWorkspace(id, { status: "failed", latest_build_id: world.seeded.resource_id })]);
  const stopped = await callTools(world, forbidden.next, read);
  expect(stopped.results).toMatchObject([{ error: expect.stringContaining("it is failed") }]);
  await store.commit([updateWorkspace(id, { deleted: true })]);
  const deleted = await callTools(world, stopped.next, read);
  expect(deleted.results).toMatchObject([{ error: expect.stringContaining("was deleted") }]);
});

test("[TO-6] when a workspace is replaced during a command, the model gets an error and the chat continues", async () => {
  await using world = await openToolWorld();
  const { id, call } = await openChat(world);
  using follower = await Follower.open(world.owner, id);
  call.callTool("call", "execute", { command: "echo begun; sleep 600", timeout: "1h" }).finish("tool_calls");
  await follower.until((events) => joinOutput(events) === "begun\n");
  const { store } = getContext(world.server);
  const stopped = { status: "stopped", latest_build_id: world.seeded.resource_id };
  await store.commit([updateWorkspace(world.seeded.workspace_id, stopped)]);
  await world.daemon[Symbol.asyncDispose]();
  const next = await world.models.next();
  const [result] = next.request.messages.at(-1)?.content ?? [];
  expect(result).toMatchObject({ is_error: true, result: { error: expect.stringContaining("it is stopped") } });
});

test("[TO-20] when a workspace's daemon dies or is stopped during a command, the model gets an error with the output", async () => {
  await using world = await openToolWorld();
  const { id, call } = await openChat(world);
  const toHomePath = (name: string): string => join(world.home, name);
  const pids: number[] = [];
  /** Waits until the call has started and printed something. */
  const startCommand = async (modelCall: typeof call, name: string): Promise<void> => {
    using follower = await Follower.open(world.owner, id);
    const outputLength = joinOutput(follower).length;
    const command = `echo $$ > ${toHomePath(name)}; echo begun; exec sleep 600`;
    modelCall.callTool(name, "execute", { command, timeout: "1h" }).finish("tool_calls");
    await follower.until((events) => joinOutput(events).slice(outputLength).includes("begun\n"));
    pids.push(Number(readFileSync(toHomePath(name), "utf8")));
  };
  const getLastPart = ({ request }: typeof call) => request.messages.at(-1)?.content.at(-1);
  try {
    await startCommand(call, "dies");
    world.daemon.process.kill("SIGKILL");
    await world.daemon.process.exited;
    await using daemon = await startAgentProcess(world.server, world.seeded, world.home);
    const second = await world.models.next();
    expect(getLastPart(second)).toMatchObject({
      is_error: true,
      result: { output: "begun\n", error: expect.stringContaining("No process has this id") },
    });
    await startCommand(second, "stops");
    const { store } = getContext(world.server);
    const stopped = { status: "stopped" as const, latest_build_id: world.seeded.resource_id };
    await store.commit([updateWorkspace(world.seeded.workspace_id, stopped)]);
    daemon.process.kill("SIGKILL");
    const third = await world.models.next();
    expect(getLastPart(third)).toMatchObject({
      is_error: true,
      result: { output: "begun\n", error: expect.stringContaining("it is stopped") },
    });
    third.say("I see.").finish();
    using follower = await Follower.open(world.owner, id);
    await follower.until(({ status }) => status === "waiting");
    expect(follower.history.at(-1)).toBe("assistant: I see.");
  } finally {
    // A killed daemon leaves its processes behind.
    for (const pid of pids.filter(isAlive)) process.kill(pid, "SIGKILL");
  }
});

test("[TO-8] a command runs once and returns its complete result even if the server restarts during the command", async () => {
  await using world = await openToolWorld();
  const { id, call } = await openChat(world);
  const toHomePath = (name: string): string => join(world.home, name);
  {
    using follower = await Follower.open(world.owner, id);
    const command = `echo run >> ${toHomePath("runs")}; echo begun; until [ -e ${toHomePath("gate")} ]; do sleep 0.05; done; echo ended`;
    const edits = [{ old_text: "one", new_text: "one and one" }];
    await Bun.write(toHomePath("a.txt"), "one\n");
    call.callTool("edit", "edit_files", { files: [{ path: "a.txt", edits }] });
    call.callTool("run", "execute", { command, timeout: "1h" }).finish("tool_calls");
    await follower.until(
      (events) => joinOutput(events) === "begun\n" && readFileSync(toHomePath("a.txt"), "utf8") !== "one\n",
    );
  }
  await world.restart();
  using follower = await Follower.open(world.owner, id);
  await follower.until((events) => joinOutput(events) === "begun\n");
  await Bun.write(toHomePath("gate"), "");
  const next = await world.models.next();
  const results = next.request.messages.flatMap(({ role, content }) => (role === "tool" ? content : []));
  expect(results).toMatchObject([
    { tool_call_id: "edit", is_error: false, result: { ok: true } },
    { tool_call_id: "run", result: { success: true, output: "begun\nended\n" } },
  ]);
  expect(readFileSync(toHomePath("runs"), "utf8")).toBe("run\n");
  expect(readFileSync(toHomePath("a.txt"), "utf8")).toBe("one and one\n");
  next.finish();
  await follower.until(({ status }) => status === "waiting");
  expect((await listMessages(world.owner, id)).filter(({ role }) => role === "tool")).toHaveLength(2);
  expect((await world.owner.get<Chat>(`/api/v2/chats/${id}`)).status).toBe("waiting");
});

test("[TO-17] an interrupt stores an error result for every pending call, even after the turn was lost", () => {
  const pending_calls = [{ message_id: 5, tool_call_id: "call", tool_name: "execute", args: {} }];
  const decision = transition(
    { ...sample("I0", 0), pending_calls },
    { type: "finish_interruption", history_version: 8, partial: [], now: 1, first_id: 100 },
  );
  if (decision.kind !== "change") throw new Error("the interruption was not finished");
  expect(decision.state).toMatchObject({ status: "waiting", pending_calls: [] });
  expect(decision.inserted).toMatchObject([{ role: "tool", content: [{ tool_call_id: "call", is_error: true }] }]);
});
