// `execute` in a real workspace: the result for the model, the output that followers see, and the processes left behind.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { updateBy } from "#db/engine/sql.ts";
import { chats } from "#db/schema/chats.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { callTools, Follower, joinOutput, listMessages, openChat, openToolWorld } from "./world.ts";

/** Returns true while a process with this ID exists. */
const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);

test("[TO-1] a command runs in the workspace, and the model receives its output, exit code and duration", async () => {
  await using world = await openToolWorld();
  const { id, call } = await openChat(world);
  const { results, next } = await callTools(
    world,
    call,
    ["execute", { command: "pwd; echo out; echo err >&2; exit 3", timeout: "60s" }],
    ["execute", { command: "cat; echo $PAGER $TERM", workdir: "/", timeout: "60s" }],
  );
  expect(results[0]).toMatchObject({ success: false, exit_code: 3 });
  expect(results[0]?.output?.split("\n").sort()).toEqual(["", world.home, "err", "out"]);
  expect(results[0]?.wall_duration_ms).toBeNumber();
  expect(results[1]).toMatchObject({ success: true, exit_code: 0, output: "cat dumb\n" });
  using follower = await Follower.open(world.owner, id);
  next.say("done").finish();
  await follower.until(({ status }) => status === "waiting");
  const roles = (await listMessages(world.owner, id)).map(({ role }) => role);
  expect(roles).toEqual(["user", "assistant", "tool", "tool", "assistant"]);
});

test("[TO-2] followers receive output while the command runs; late followers receive it from the beginning", async () => {
  await using world = await openToolWorld();
  const { id, call } = await openChat(world);
  using follower = await Follower.open(world.owner, id);
  const gate = join(world.home, "gate");
  const command = `echo häl; until [ -e ${gate} ]; do sleep 0.05; done; echo über`;
  call.callTool("call", "execute", { command, timeout: "60s" }).finish("tool_calls");
  await follower.until((events) => joinOutput(events) === "häl\n");
  using late = await Follower.open(world.owner, id);
  await late.until((events) => joinOutput(events) === "häl\n");
  await Bun.write(gate, "");
  const next = await world.models.next();
  next.finish();
  await follower.until(({ status }) => status === "waiting");
  expect(joinOutput(follower)).toBe("häl\nüber\n");
  const results = follower.events.flatMap((event) =>
    event.type === "message_part" && event.message_part.part.result ? [event.message_part] : [],
  );
  expect(results).toMatchObject([{ role: "tool", part: { type: "tool-result", result: { output: "häl\nüber\n" } } }]);
});

test("[TO-3] output longer than 32 KB keeps its beginning and its end", async () => {
  await using world = await openToolWorld();
  const { call } = await openChat(world);
  const { results } = await callTools(world, call, ["execute", { command: "seq 1 100000", timeout: "60s" }]);
  const { output = "", truncated } = results[0] ?? {};
  expect(truncated).toBe(true);
  expect(output).toStartWith("1\n2\n3\n");
  expect(output).toEndWith("99999\n100000\n");
  expect(output).toMatch(/\n\[\.\.\. \d+ bytes left out \.\.\.\]\n/);
  expect(Buffer.byteLength(output)).toBeWithin(32_000, 32_900);
});

test("[TO-4] a command that exceeds its timeout continues in the background; the model can list, inspect and end it", async () => {
  await using world = await openToolWorld();
  const { call } = await openChat(world);
  const first = await callTools(
    world,
    call,
    ["execute", { command: "echo begun; touch begun; sleep 600", timeout: "100ms" }],
    ["execute", { command: "sleep 601 &" }],
    ["execute", { command: "sleep 602", run_in_background: true }],
  );
  const [slowCall, ampersandCall, backgroundCall] = first.results;
  expect(slowCall).toMatchObject({ success: false, error: expect.stringContaining("still runs") });
  expect([ampersandCall, backgroundCall]).toMatchObject([{ success: true }, { success: true }]);
  const process_id = slowCall?.background_process_id;
  await until(() => existsSync(join(world.home, "begun")));
  const second = await callTools(
    world,
    first.next,
    ["process_list"],
    ["process_output", { process_id, wait_timeout: "0s" }],
  );
  expect(second.results).toMatchObject([
    { processes: [{ running: true }, { running: true, command: "sleep 601" }, { running: true }] },
    { success: true, running: true },
  ]);
  const third = await callTools(world, second.next, ["process_signal", { process_id, signal: "terminate" }]);
  expect(third.results).toMatchObject([{ success: true }]);
  const fourth = await callTools(world, third.next, ["process_output", { process_id }]);
  expect(fourth.results).toMatchObject([{ output: "begun\n", running: false, exit_code: 143 }]);
  const fifth = await callTools(
    world,
    fourth.next,
    ["process_signal", { process_id, signal: "kill" }],
    ["process_output", { process_id: "missing" }],
  );
  expect(fifth.results).toMatchObject([
    { error: expect.stringContaining("has ended") },
    { error: expect.stringContaining("No process has this id") },
  ]);
});

test("[TO-5] an interrupt ends the command and all of its processes, and keeps its output", async () => {
  await using world = await openToolWorld();
  const { id, call } = await openChat(world);
  using follower = await Follower.open(world.owner, id);
  const pidsFile = join(world.home, "pids");
  const command = `trap '' TERM; echo $$ > ${pidsFile}; sleep 600 & echo $! >> ${pidsFile}; echo begun; wait`;
  call.callTool("call", "execute", { command, timeout: "1h" }).finish("tool_calls");
  await follower.until((events) => joinOutput(events) === "begun\n");
  const [shell = 0, child = 0] = readFileSync(pidsFile, "utf8").trim().split("\n").map(Number);
  expect([isAlive(shell), isAlive(child)]).toEqual([true, true]);
  const startedAt = performance.now();
  await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});
  await until(() => !isAlive(shell) && !isAlive(child));
  // An idle machine takes half a second.
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  await follower.until(({ status }) => status === "waiting");
  const lastMessage = (await listMessages(world.owner, id)).at(-1);
  expect(lastMessage?.content).toMatchObject([
    { type: "tool-result", is_error: true, result: { output: "begun\n", error: "The call was interrupted." } },
  ]);
});

test("[TO-5] an interrupt ends the command even if the server restarts before or during the interruption", async () => {
  await using world = await openToolWorld();
  const startCommand = async (name: string): Promise<{ id: string; follower: Follower; readPids: () => number[] }> => {
    const { id, call } = await openChat(world);
    const file = join(world.home, name);
    const command = `trap '' TERM; echo $$ > ${file}; sleep 600 & echo $! >> ${file}; echo begun; wait`;
    const follower = await Follower.open(world.owner, id);
    call.callTool("call", "execute", { command, timeout: "1h" }).finish("tool_calls");
    await follower.until((events) => joinOutput(events) === "begun\n");
    return { id, follower, readPids: () => readFileSync(file, "utf8").trim().split("\n").map(Number) };
  };
  const [first, second] = [await startCommand("first"), await startCommand("second")];
  first.follower.close();
  second.follower.close();
  // The second chat was being interrupted when its server died.
  await getContext(world.server).store.commit([updateBy(chats, chats.id)(second.id, { status: "interrupting" })]);
  await world.restart();
  await until(() => !second.readPids().some(isAlive));
  expect(first.readPids().map(isAlive)).toEqual([true, true]);
  using follower = await Follower.open(world.owner, first.id);
  await follower.until((events) => joinOutput(events) === "begun\n");
  await world.owner.post<unknown>(`/api/v2/chats/${first.id}/interrupt`, {});
  await until(() => !first.readPids().some(isAlive));
  await follower.until(({ status }) => status === "waiting");
  for (const { id } of [first, second]) {
    using interrupted = await Follower.open(world.owner, id);
    await interrupted.until(({ status }) => status === "waiting");
    expect((await listMessages(world.owner, id)).at(-1)?.content).toMatchObject([
      { type: "tool-result", is_error: true, result: { error: "The call was interrupted." } },
    ]);
  }
});
