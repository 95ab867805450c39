// A server is killed while it forks a workspace, at each failpoint: the next server creates each copy once, with all files, and nothing is
// left over.
import { expect } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FORK_FAILPOINTS } from "#base/failpoint.ts";
import type { Fork, Forks } from "#schema/workspaces/fork.ts";
import type { Snapshots } from "#schema/workspaces/snapshot.ts";
import type { Workspaces } from "#schema/workspaces/workspace.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";
import { ServerSlot } from "./server.ts";
import { signInAdmin } from "./server-world.ts";

const test = testSingleServer("needsLocalServerProcess");

const TEMPLATE = "provisioner: local\nresources: [{name: main, agents: [{name: main}]}]\n";
/** Failpoints of chats are left out, because there is no model here. Only those snapshot failpoints are included that a copy reaches. */
const POINTS = [...FORK_FAILPOINTS.filter((point) => point !== "fork_chats"), "home_replaced"] as const;

test("[FO-6] killed at each failpoint, a server completes all copies of a fork, each once, and leaves nothing behind", async () => {
  await using place = await ServerSlot.make();
  await place.start();
  const { admin } = await signInAdmin(place);
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id);
  await awaitBuild(admin, id);
  const root = join(place.directory, "workspaces");
  const path = `/api/v2/workspaces/${id}`;
  const workspaceIds = new Set([id]);
  for (const point of POINTS) {
    await place.stop();
    const server = await place.start({ env: { SLIPWAY_FAILPOINT: point } });
    writeFileSync(join(root, id, "home", "kept"), point);
    // The server may die before it responds.
    await admin
      .post<Fork>(`${path}/forks`, { names: ["a", "b"].map((name) => `${name}-${workspaceIds.size}`) })
      .catch(() => {});
    expect({ point, signal: (await server.ended).signal }).toEqual({ point, signal: "SIGKILL" });
    await place.start();
    const fork = await until(async () => {
      const [newest] = (await admin.get<Forks>(`${path}/forks`)).forks;
      return newest?.status === "ready" && newest;
    });
    expect({ point, copies: fork.copies.map(({ status }) => status) }).toEqual({ point, copies: ["ready", "ready"] });
    for (const { workspace_id } of fork.copies) {
      expect(readFileSync(join(root, workspace_id, "home", "kept"), "utf8")).toBe(point);
      expect(readdirSync(join(root, workspace_id)).filter((name) => /draft|replaced/.test(name))).toEqual([]);
      workspaceIds.add(workspace_id);
    }
    await until(async () => (await admin.get<Snapshots>(`${path}/snapshots`)).snapshots.length === 0);
    expect({ point, left: readdirSync(join(root, id, "snapshots")) }).toEqual({ point, left: [] });
    expect(new Set(readdirSync(root))).toEqual(workspaceIds);
    expect((await admin.get<Workspaces>("/api/v2/workspaces")).count).toBe(workspaceIds.size);
  }
  await place.stop();
});
