// Usage reports, and the timings of builds.
import { expect, test } from "bun:test";
import { sha256, uuid } from "#base/ids.ts";
import type { BuildTimings } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { getContext } from "#test/support/seed.ts";
import { awaitBuild, createBuild } from "#test/support/workspaces.ts";
import { openSharedWorkspace } from "./shared-workspace.ts";

test("[WC-5] a usage report updates last_used_at; it names either both a current agent and a known app, or neither", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, id, server, workspace } = shared;
  const agent_id = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
  const loadLastUsed = async () => {
    await getContext(server).uses.flush();
    return Date.parse((await clients.owner.get<Workspace>(path)).last_used_at);
  };
  const reportUsage = async (body?: unknown) => {
    const response = await clients.owner.fetch("POST", `${path}/usage`, body);
    const { validations = [] } =
      response.status === 204 ? {} : ((await response.json()) as { validations?: { field: string }[] });
    return [response.status, ...validations.map(({ field }) => field)];
  };
  let before = await loadLastUsed();
  for (const body of [undefined, {}, { agent_id, app_name: "vscode" }, { agent_id, app_name: "ssh" }]) {
    await new Promise((resolve) => setImmediate(resolve));
    expect(await reportUsage(body)).toEqual([204]);
    const now = await loadLastUsed();
    expect(now).toBeGreaterThan(before);
    before = now;
  }
  expect(await reportUsage({ agent_id })).toEqual([400, "app_name"]);
  expect(await reportUsage({ app_name: "ssh" })).toEqual([400, "agent_id"]);
  expect(await reportUsage({ agent_id, app_name: "emacs" })).toEqual([400, "app_name"]);
  expect(await reportUsage({ agent_id: uuid(), app_name: "ssh" })).toEqual([404]);
  await createBuild(clients.owner, id, "start");
  await awaitBuild(clients.owner, id);
  expect(await reportUsage({ agent_id, app_name: "ssh" })).toEqual([404]);
  expect(await loadLastUsed()).toBeGreaterThanOrEqual(before);
});

test("[WC-5] an agent can report usage only of its own workspace; the usage counts for the owner", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, server, workspace, id } = shared;
  const token = uuid();
  await getContext(server).store.commit([
    { sql: "update agents set token_hash = ? where workspace_id = ?", rows: [[sha256(token), id]] },
  ]);
  const agent = clients.owner.withToken(token);
  const agent_id = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
  const loadLastUsed = async () => {
    await getContext(server).uses.flush();
    return Date.parse((await clients.owner.get<Workspace>(path)).last_used_at);
  };
  const before = await loadLastUsed();
  await new Promise((resolve) => setImmediate(resolve));
  const reportUsage = async (workspacePath: string, body?: unknown) =>
    (await agent.fetch("POST", `${workspacePath}/usage`, body)).status;
  expect(await reportUsage(path, { agent_id, app_name: "ssh" })).toBe(204);
  expect(await loadLastUsed()).toBeGreaterThan(before);
  expect(await reportUsage(path)).toBe(204);
  expect(await reportUsage(path, { agent_id: uuid(), app_name: "ssh" })).toBe(404);
  expect(await reportUsage(`/api/v2/workspaces/${uuid()}`)).toBe(404);
  const context = getContext(server);
  await context.usage.flush();
  const minutes = await context.store.all({
    sql: "select k.name as text from usage_minutes m join usage_keys k on k.key = m.user",
    params: [],
    map: ([text]) => String(text),
  });
  expect(minutes).toContain(workspace.owner_id);
});

test("[WC-4] timings are those of the latest build, including the agent's first connection", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path, id, server, workspace } = shared;
  const loadTimings = () => clients.owner.get<BuildTimings>(`${path}/timings`);
  expect((await loadTimings()).agent_connection_timings).toEqual([]);
  const agent = workspace.latest_build.resources[0]?.agents[0];
  if (!agent) throw new Error("the workspace has no agent");
  const connected = "update agents set first_connected_at = created_at + 1500 where id = ?";
  await getContext(server).store.commit([{ sql: connected, rows: [[agent.id]] }]);
  const [connection] = (await loadTimings()).agent_connection_timings;
  expect(connection).toMatchObject({ stage: "connect", workspace_agent_id: agent.id, workspace_agent_name: "dev" });
  expect(Date.parse(connection?.ended_at ?? "") - Date.parse(connection?.started_at ?? "")).toBe(1500);
  expect((await loadTimings()).provisioner_timings.every(({ started_at, ended_at }) => started_at <= ended_at)).toBe(
    true,
  );
  await createBuild(clients.owner, id, "stop");
  await awaitBuild(clients.owner, id);
  expect((await loadTimings()).agent_connection_timings).toEqual([]);
});
