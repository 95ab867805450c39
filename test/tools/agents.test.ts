// A chat in a workspace with two agents: a real daemon for each, and a model controlled by the test.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256, uuid } from "#base/ids.ts";
import { findAgent, insertAgent } from "#db/agents/agents.ts";
import { startAgentProcess } from "#test/api/agents/reach.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { callTools, openChat, openToolWorld, type ToolWorld } from "./world.ts";

/**
 * Starts an agent in a container of another agent of the workspace, with its own daemon and home folder. The outer agent is not the first
 * agent, because the compiled daemon of that one deletes child agents that it has not created.
 */
const startInnerAgent = async (world: ToolWorld, name: string) => {
  const { store, clock } = getContext(world.server);
  const existingAgent = await store.get(findAgent({ id: world.seeded.agent_id }));
  if (!existingAgent) throw new Error("there is no agent");
  const [id, outer_id, agent_token] = [uuid(), uuid(), uuid()];
  const { workspace_id, build_id, resource_id, architecture, operating_system } = existingAgent;
  const times = { created_at: clock.now(), updated_at: clock.now() };
  const sharedFields = { workspace_id, build_id, resource_id, architecture, operating_system, ...times };
  const key = await store.reserve("agents", 2);
  await store.commit([
    insertAgent({ key, id: outer_id, name: "outer", token_hash: sha256(uuid()), ...sharedFields }),
    insertAgent({ key: key + 1, id, name, parent_id: outer_id, token_hash: sha256(agent_token), ...sharedFields }),
  ]);
  const home = mkdtempSync(join(tmpdir(), "slipway-inside-"));
  const daemon = await startAgentProcess(world.server, { ...world.seeded, agent_id: id, agent_token }, home);
  return {
    id,
    home,
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
};

const findInputProperties = (
  { request }: { request: { tools: readonly { name: string; input_schema: unknown }[] } },
  name: string,
) =>
  (
    request.tools.find((tool) => tool.name === name)?.input_schema as
      | { properties: Record<string, unknown> }
      | undefined
  )?.properties ?? {};

test("[TO-24] in a workspace with several agents, the model knows their names, and each call runs in the agent that it names", async () => {
  await using world = await openToolWorld();
  const alone = await openChat(world);
  expect(findInputProperties(alone.call, "execute")).not.toHaveProperty("agent");
  alone.call.finish("stop");

  await using innerAgent = await startInnerAgent(world, "app");
  const { call } = await openChat(world);
  for (const name of ["execute", "read_file", "write_file", "edit_files", "process_output"]) {
    expect(findInputProperties(call, name).agent).toMatchObject({
      enum: ["app", "main", "outer"],
      description: expect.stringContaining('"main" when absent. In containers of it are "app".'),
    });
  }
  expect(findInputProperties(call, "list_templates")).not.toHaveProperty("agent");
  writeFileSync(join(innerAgent.home, "where"), "inside");
  writeFileSync(join(world.home, "where"), "outside");
  const { results, next } = await callTools(
    world,
    call,
    ["execute", { command: "cat ~/where", agent: "app" }],
    ["execute", { command: "cat ~/where" }],
    ["read_file", { path: "where", agent: "app" }],
    ["write_file", { path: "made", content: "by the chat", agent: "app" }],
    ["execute", { command: "true", agent: "missing" }],
    ["execute", { command: "echo on; sleep 600", agent: "app", run_in_background: true }],
  );
  expect(results.slice(0, 2)).toMatchObject([{ output: "inside" }, { output: "outside" }]);
  expect(JSON.stringify(results[2])).toContain("inside");
  expect(readFileSync(join(innerAgent.home, "made"), "utf8")).toBe("by the chat");
  expect(results[4]?.error).toBe('The workspace has no agent "missing". It has: app, main, outer.');
  const process_id = String(results[5]?.background_process_id);
  const second = await callTools(
    world,
    next,
    ["process_signal", { process_id, signal: "kill", agent: "app" }],
    ["process_output", { process_id }],
  );
  expect(second.results[0]?.error).toBeUndefined();
  expect(second.results[1]?.error).toContain("No process has this id");
  second.next.finish("stop");
});

test("[TO-24] an interrupt ends the turn's commands in the named agent; the chat's sockets also accept an agent's name", async () => {
  await using world = await openToolWorld();
  await using innerAgent = await startInnerAgent(world, "app");
  const { id, call } = await openChat(world);
  const pidFile = join(innerAgent.home, "pid");
  const command = `echo $$ > ${pidFile}; exec sleep 600`;
  call.callTool("call-1", "execute", { command, agent: "app", timeout: "10m" }).finish("tool_calls");
  const pid = await until(() => {
    try {
      return Number(readFileSync(pidFile, "utf8"));
    } catch {
      return false;
    }
  });
  await world.owner.post(`/api/v2/chats/${id}/interrupt`);
  await until(() => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  });

  const path = `/api/v2/chats/${id}/stream/git`;
  using socket = await world.owner.socket(`${path}?agent=app`);
  socket.send(JSON.stringify({ type: "refresh" }));
  expect(await socket.json<{ type: string }>()).toMatchObject({ type: "changes" });
  const response = await world.owner.fetch("GET", `${path}?agent=missing`);
  expect([response.status, await response.json()]).toMatchObject([400, { validations: [{ field: "agent" }] }]);
});
