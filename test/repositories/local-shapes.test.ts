// Repositories that do not need an image become processes on this machine, with the same properties as in Docker.
import { expect } from "bun:test";
import { join } from "node:path";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { findAgent, runInTerminal } from "#test/support/docker/docker-world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { awaitWorkspace, openWorld } from "#test/support/workspaces.ts";
import { listShapes } from "./shapes.ts";
import { openGitWorld, removeWorkspace } from "./world.ts";

testNeeding(
  [needs.git, requireSingleServer("local")],
  "[RW-2] [RW-7] five kinds of repositories become running workspaces without Docker, with the same properties",
  async () => {
    using git = openGitWorld();
    await using world = await openWorld();
    const { admin } = world;
    const localShapes = listShapes("").filter(({ localOutput }) => localOutput !== undefined);
    expect(localShapes.length).toBe(5);
    for (const { name, files, command, localOutput, app } of localShapes) {
      await git.publish(name, files);
      const body = { name, repository: { url: git.link(name) } };
      const { id, template_name } = await admin.post<Workspace>("/api/v2/users/me/workspaces", body);
      expect(template_name).toBe("repository-local");
      const ready = await awaitWorkspace(admin, id, (workspace) => findAgent(workspace)?.lifecycle_state === "ready");
      const apps = findAgent(ready)?.apps.map(({ display_name }) => display_name) ?? [];
      const clone = join(world.server.directory, "workspaces", id, "home", name);
      const output = await runInTerminal(admin, findAgent(ready)?.id ?? "", `cd ${clone}; ${command}`);
      expect([name, output, app === undefined || apps.includes(app)]).toEqual([name, localOutput ?? "", true]);
      await removeWorkspace(admin, id);
    }
  },
);
