// Favorites of workspace owners.
import { expect, test } from "bun:test";
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import { ApiError } from "#src/client.ts";
import { seedUser } from "#test/support/seed.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";

test("[WK-21] only the owner can favorite a workspace, which then comes first in the owner's list, but not in others'", async () => {
  await using world = await openWorld();
  const { template_id, organization_id } = await seedTemplate(world.server);
  const ada = world.admin.withToken((await seedUser(world.server, { username: "ada", organization_id })).token);
  const first = await createWorkspace(ada, template_id, "a");
  const second = await createWorkspace(ada, template_id, "b");
  await Promise.all([first, second].map(({ id }) => awaitBuild(ada, id)));
  const path = `/api/v2/workspaces/${second.id}/favorite`;
  for (const _ of ["once", "twice"]) expect((await ada.fetch("PUT", path)).status).toBe(204);
  const list = await ada.get<Workspaces>("/api/v2/workspaces");
  expect(list.workspaces.map(({ name, favorite }) => [name, favorite])).toEqual([
    ["b", true],
    ["a", false],
  ]);
  expect((await world.admin.get<Workspace>(`/api/v2/workspaces/${second.id}`)).favorite).toBe(false);
  const error = await world.admin.put(path).catch((error: unknown) => error);
  expect(error instanceof ApiError && error.status).toBe(403);
  expect((await ada.fetch("DELETE", path)).status).toBe(204);
  expect((await ada.get<Workspace>(`/api/v2/workspaces/${second.id}`)).favorite).toBe(false);
});
