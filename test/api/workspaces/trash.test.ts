// Restoring deleted workspaces with real files, and deleting workspaces permanently.
import { expect } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimer } from "#db/engine/timers.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Trash } from "#schema/workspaces/trash.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { seedUser } from "#test/support/seed.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const test = testSingleServer("local");

const TEMPLATE = `
provisioner: local
parameters: [{name: project, default: none, mutable: true}]
resources: [{name: a, agents: [{name: main}]}]
`;

const loadTrash = (client: Client): Promise<Trash> => client.get<Trash>("/api/v2/workspaces/trash");
const isDeleted = ({ latest_build }: Workspace): boolean => latest_build.status === "deleted";
const deleteWorkspace = async (client: Client, id: string, more: object = {}): Promise<void> => {
  await createBuild(client, id, "delete", more);
  await awaitWorkspace(client, id, isDeleted);
};

test("[SN-15][SN-16][SN-18] a deleted workspace frees its name and shares, and is restored with files, snapshots and parameters", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const template = await makeTemplate(admin, TEMPLATE);
  const values = { rich_parameter_values: [{ name: "project", value: "ship" }] };
  const created = await createWorkspace(admin, template.id, "dev", values);
  const { id, organization_id } = created;
  await awaitBuild(admin, id);
  const folder = join(server.directory, "workspaces", id);
  writeFileSync(join(folder, "home", "kept"), "mine");
  await admin.post(`/api/v2/workspaces/${id}/snapshots`, { name: "first" });
  await until(
    async () =>
      (await admin.get<{ snapshots: { status: string }[] }>(`/api/v2/workspaces/${id}/snapshots`)).snapshots[0]
        ?.status === "ready",
  );
  const bob = await seedUser(server, { organization_id });
  const bobClient = new Client(server.url, bob.token);
  await admin.patch(`/api/v2/workspaces/${id}/acl`, { user_roles: { [bob.user_id]: "admin" } });
  await admin.post(`/api/v2/workspaces/${id}/port-share`, {
    agent_name: "main",
    port: 3000,
    protocol: "http",
    share_level: "authenticated",
  });
  expect((await bobClient.fetch("GET", `/api/v2/workspaces/${id}`)).status).toBe(200);

  await deleteWorkspace(admin, id);
  expect(existsSync(join(folder, "home", "kept"))).toBe(true);
  expect((await admin.fetch("GET", `/api/v2/workspaces/${id}`)).status).toBe(410);
  const { workspaces, bytes } = await loadTrash(admin);
  expect(workspaces).toMatchObject([{ id, name: "dev", owner_name: "admin" }]);
  expect(bytes).toBeGreaterThan(0);
  const [{ deleted_at = "", kept_until = "" } = {}] = workspaces;
  expect(Math.round((Date.parse(kept_until) - Date.parse(deleted_at)) / 86_400_000)).toBe(7);
  expect((await loadTrash(bobClient)).workspaces).toEqual([]);
  expect((await bobClient.fetch("POST", `/api/v2/workspaces/${id}/restore`, {})).status).toBe(404);
  expect((await admin.fetch("POST", `/api/v2/workspaces/${id}/builds`, { transition: "start" })).status).toBe(409);

  const sameName = await createWorkspace(admin, template.id, "dev");
  await awaitBuild(admin, sameName.id);
  const takenResponse = await admin.fetch("POST", `/api/v2/workspaces/${id}/restore`, { name: "dev" });
  expect(takenResponse.status).toBe(409);
  expect((await loadTrash(admin)).workspaces).toHaveLength(1);
  const restored = await admin.post<Build>(`/api/v2/workspaces/${id}/restore`, {});
  expect(restored).toMatchObject({ transition: "stop", workspace_name: "dev-2" });
  const restoredWorkspace = await awaitBuild(admin, id);
  expect([restoredWorkspace.name, restoredWorkspace.latest_build.status]).toEqual(["dev-2", "stopped"]);
  expect((await loadTrash(admin)).workspaces).toEqual([]);
  expect((await bobClient.fetch("GET", `/api/v2/workspaces/${id}`)).status).toBe(404);
  await createBuild(admin, id, "start");
  expect((await awaitBuild(admin, id)).latest_build.status).toBe("running");
  expect(readFileSync(join(folder, "home", "kept"), "utf8")).toBe("mine");
  const { latest_build } = await admin.get<Workspace>(`/api/v2/workspaces/${id}`);
  expect(await admin.get<object[]>(`/api/v2/workspacebuilds/${latest_build.id}/parameters`)).toEqual(
    values.rich_parameter_values,
  );
  const { snapshots } = await admin.get<{ snapshots: { name: string }[] }>(`/api/v2/workspaces/${id}/snapshots`);
  expect(snapshots.map(({ name }) => name)).toEqual(["first"]);
  expect(await admin.get<object>(`/api/v2/workspaces/${id}/port-share`)).toEqual({ shares: [] });
  const { audit_logs } = await admin.get<{ audit_logs: { action: string; resource_type: string }[] }>(
    `/api/v2/audit?limit=50&q=${encodeURIComponent(`resource_id:${id}`)}`,
  );
  expect(audit_logs.some(({ action }) => action === "delete")).toBe(true);
});

testInProcess(
  "[SN-17] the server empties the trash on schedule or on request; without a trash, files are deleted immediately",
  async () => {
    await using world = await openWorld();
    const { admin, server } = world;
    const template = await makeTemplate(admin, TEMPLATE);
    const toFolder = (id: string): string => join(server.directory, "workspaces", id);
    const createNamed = async (name: string): Promise<string> => {
      const { id } = await createWorkspace(admin, template.id, name);
      await awaitBuild(admin, id);
      return id;
    };
    const [timed, requested, direct] = [
      await createNamed("timed"),
      await createNamed("asked"),
      await createNamed("direct"),
    ];
    await deleteWorkspace(admin, timed);
    await deleteWorkspace(admin, requested);
    await deleteWorkspace(admin, direct, { permanent: true });
    expect([timed, requested, direct].map((id) => existsSync(toFolder(id)))).toEqual([true, true, false]);
    await createBuild(admin, requested, "delete", { permanent: true });
    await until(() => !existsSync(toFolder(requested)), { what: "the permanent deletion" });
    // Makes the scheduled deletion due.
    await server.context?.store.commit([setTimer("workspace", timed, "empty_trash", 0)]);
    await until(() => !existsSync(toFolder(timed)), { what: "the scheduled deletion" });
    await until(async () => (await loadTrash(admin)).workspaces.length === 0, { what: "an empty trash" });
    expect((await admin.fetch("POST", `/api/v2/workspaces/${timed}/restore`, {})).status).toBe(409);

    await admin.patch(`/api/v2/templates/${template.id}`, { trash_days: 0 });
    const last = await createNamed("last");
    await deleteWorkspace(admin, last);
    expect(existsSync(toFolder(last))).toBe(false);
    expect((await loadTrash(admin)).workspaces).toEqual([]);
  },
);
