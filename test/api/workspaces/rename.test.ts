// Renaming a workspace.
import { expect, test } from "bun:test";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { awaitBuild, createBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { openSharedWorkspace } from "./shared-workspace.ts";

test("[WC-1] if renames are off, a new name returns 405, and the current name is accepted", async () => {
  await using shared = await openSharedWorkspace();
  const { clients, path } = shared;
  expect((await clients.owner.get<Workspace>(path)).allow_renames).toBe(false);
  const response = await clients.owner.fetch("PATCH", path, { name: "other" });
  expect([response.status, ((await response.json()) as { message: string }).message]).toEqual([
    405,
    "Workspaces cannot be renamed on this server.",
  ]);
  for (const body of [{ name: "dev" }, {}]) expect((await clients.owner.fetch("PATCH", path, body)).status).toBe(204);
  expect((await clients.owner.fetch("PATCH", path, { name: "a b" })).status).toBe(400);
});

test("[WC-1] if renames are on, names are validated and unique per owner, and watchers see the new name", async () => {
  await using world = await openWorld({ env: { SLIPWAY_ALLOW_WORKSPACE_RENAMES: "true" } });
  const { template_id, organization_id } = await seedTemplate(world.server);
  const ada = world.admin.withToken((await seedUser(world.server, { username: "ada", organization_id })).token);
  const { id } = await createWorkspace(ada, template_id, "one");
  const { id: second } = await createWorkspace(ada, template_id, "two");
  await createWorkspace(world.admin, template_id, "three");
  expect((await awaitBuild(ada, id)).allow_renames).toBe(true);
  const path = `/api/v2/workspaces/${id}`;
  const rename = async (name: unknown) => {
    const response = await ada.fetch("PATCH", path, { name });
    const fields =
      response.status === 204 ? [] : ((await response.json()) as { validations?: { field: string }[] }).validations;
    return [response.status, ...(fields ?? []).map(({ field }) => field)];
  };
  using watcher = await ada.socket(`${path}/watch-ws`);
  expect(await rename("three")).toEqual([204]);
  for (;;) {
    const { data } = await watcher.json<{ data: Workspace | null }>();
    if (data?.name === "three") break;
  }
  expect((await ada.get<Workspace>("/api/v2/users/ada/workspace/Three")).id).toBe(id);
  expect((await ada.fetch("GET", "/api/v2/users/ada/workspace/one")).status).toBe(404);
  expect(await rename("THREE")).toEqual([204]);
  for (const takenName of ["two", "TWO"]) expect(await rename(takenName)).toEqual([409, "name"]);
  for (const invalidName of ["", "new", "a_b", "x".repeat(33), 7])
    expect(await rename(invalidName)).toEqual([400, "name"]);
  expect((await ada.get<Workspace>(path)).name).toBe("THREE");
  await createBuild(ada, id, "delete");
  await awaitBuild(ada, id).catch(() => undefined);
  expect(await rename("four")).toEqual([405]);
  const reuseResponse = await ada.fetch("PATCH", `/api/v2/workspaces/${second}`, { name: "three" });
  expect(reuseResponse.status).toBe(204);
  expect(getContext(world.server).workspaces.size).toBeGreaterThan(0);
});
