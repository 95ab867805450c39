// A workspace from the built-in template `local`, with a real process and a real daemon that reports over the network.

import { expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const test = testSingleServer("local");

type Template = { id: string; name: string };
const findAgent = ({ latest_build }: Workspace) => latest_build.resources[0]?.agents[0];

test("[WK-14] on a fresh install, a workspace from the template `local` starts, becomes ready, stops and is deleted without leftovers", async () => {
  await using world = await openWorld();
  const templates = await world.admin.get<Template[]>("/api/v2/templates");
  const local = templates.find(({ name }) => name === "local");
  if (!local) throw new Error("a fresh install has no template local");
  const { id } = await createWorkspace(world.admin, local.id);
  const ready = await awaitWorkspace(world.admin, id, (workspace) => findAgent(workspace)?.lifecycle_state === "ready");
  expect(findAgent(ready)).toMatchObject({ status: "connected", health: { healthy: true } });
  expect(ready.health).toEqual({ healthy: true, failing_agents: [] });
  await createBuild(world.admin, id, "stop");
  const stopped = await awaitBuild(world.admin, id);
  expect(stopped.latest_build.status).toBe("stopped");
  await createBuild(world.admin, id, "delete", { permanent: true });
  await awaitWorkspace(world.admin, id, ({ latest_build }) => latest_build.status === "deleted");
  expect(existsSync(join(world.server.directory, "workspaces", id))).toBe(false);
});
