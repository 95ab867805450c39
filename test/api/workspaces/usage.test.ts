// Reports of use, and the timings of a build.
import { expect, test } from "bun:test";
import { sha256, uuid } from "#base/ids.ts";
import type { BuildTimings } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { getContext } from "#test/support/seed.ts";
import { awaitBuild, createBuild } from "#test/support/workspaces.ts";
import { openSharedWorkspace } from "./shared-workspace.ts";

test("[WC-5] a usage report updates last_used_at; agent and app are given together, exist, and are of the latest build", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, id, server, workspace } = shared;
  const agent_id = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
  const getLastUsed = async () => {
    await getContext(server).uses.flush();
    return Date.parse((await clients.owner.get<Workspace>(path)).last_used_at);
  };
  const post = async (body?: unknown) => {
    const answer = await clients.owner.fetch("POST", `${path}/usage`, body);
    const { validations = [] } =
      answer.status === 204 ? {} : ((await answer.json()) as { validations?: { field: string }[] });
    return [answer.status, ...validations.map(({ field }) => field)];
  };
  let before = await getLastUsed();
  for (const body of [undefined, {}, { agent_id, app_name: "vscode" }, { agent_id, app_name: "ssh" }]) {
    await new Promise((resolve) => setImmediate(resolve));
    expect(await post(body)).toEqual([204]);
    const now = await getLastUsed();
    expect(now).toBeGreaterThan(before);
    before = now;
  }
  expect(await post({ agent_id })).toEqual([400, "app_name"]);
  expect(await post({ app_name: "ssh" })).toEqual([400, "agent_id"]);
  expect(await post({ agent_id, app_name: "emacs" })).toEqual([400, "app_name"]);
  expect(await post({ agent_id: uuid(), app_name: "ssh" })).toEqual([404]);
  await createBuild(clients.owner, id, "start");
  await awaitBuild(clients.owner, id);
  expect(await post({ agent_id, app_name: "ssh" })).toEqual([404]);
  expect(await getLastUsed()).toBeGreaterThanOrEqual(before);
});

test("[WC-5] an agent reports usage of its own workspace for its owner, and of no other", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, server, workspace, id } = shared;
  const token = uuid();
  await getContext(server).store.commit([
    { sql: "update agents set token_hash = ? where workspace_id = ?", rows: [[sha256(token), id]] },
  ]);
  const agent = clients.owner.withToken(token);
  const agent_id = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
  const getLastUsed = async () => {
    await getContext(server).uses.flush();
    return Date.parse((await clients.owner.get<Workspace>(path)).last_used_at);
  };
  const before = await getLastUsed();
  await new Promise((resolve) => setImmediate(resolve));
  const post = async (to: string, body?: unknown) => (await agent.fetch("POST", `${to}/usage`, body)).status;
  expect(await post(path, { agent_id, app_name: "ssh" })).toBe(204);
  expect(await getLastUsed()).toBeGreaterThan(before);
  expect(await post(path)).toBe(204);
  expect(await post(path, { agent_id: uuid(), app_name: "ssh" })).toBe(404);
  expect(await post(`/api/v2/workspaces/${uuid()}`)).toBe(404);
  const context = getContext(server);
  await context.usage.flush();
  const minutes = await context.store.all({
    sql: "select k.name as text from usage_minutes m join usage_keys k on k.key = m.user",
    params: [],
    map: ([text]) => String(text),
  });
  expect(minutes).toContain(workspace.owner_id);
});

test("[WC-4] timings are those of the latest build, including the agent's first connection once there was one", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, id, server, workspace } = shared;
  const timings = () => clients.owner.get<BuildTimings>(`${path}/timings`);
  expect((await timings()).agent_connection_timings).toEqual([]);
  const agent = workspace.latest_build.resources[0]?.agents[0];
  if (!agent) throw new Error("the workspace has no agent");
  const connected = "update agents set first_connected_at = created_at + 1500 where id = ?";
  await getContext(server).store.commit([{ sql: connected, rows: [[agent.id]] }]);
  const [connection] = (await timings()).agent_connection_timings;
  expect(connection).toMatchObject({ stage: "connect", workspace_agent_id: agent.id, workspace_agent_name: "dev" });
  expect(Date.parse(connection?.ended_at ?? "") - Date.parse(connection?.started_at ?? "")).toBe(1500);
  expect((await timings()).provisioner_timings.every((one) => one.started_at <= one.ended_at)).toBe(true);
  await createBuild(clients.owner, id, "stop");
  await awaitBuild(clients.owner, id);
  expect((await timings()).agent_connection_timings).toEqual([]);
});
