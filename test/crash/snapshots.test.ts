// A server is killed while it creates, restores and deletes snapshots, at each failpoint: the next server completes what was started, the
// workspace's files are complete, none of its processes stays paused, and nothing is left over.
import { expect } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Failpoint, SNAPSHOT_FAILPOINTS } from "#base/failpoint.ts";
import type { Snapshot, Snapshots } from "#schema/workspaces/snapshot.ts";
import type { Client } from "#src/client.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";
import { ServerSlot } from "./server.ts";
import { signInAdmin } from "./server-world.ts";

const test = testSingleServer("needsLocalServerProcess");

/** A workspace that counts, which shows whether it is paused. */
const TEMPLATE = `
provisioner: local
resources:
  - name: main
    agents:
      - name: main
        scripts:
          - display_name: Count
            run_on_start: true
            script: 'setsid sh -c "n=0; while sleep 0.05; do n=\\$((n+1)); echo \\$n > ../count; done" > /dev/null 2>&1 &'
`;

const snapshotsPath = (id: string): string => `/api/v2/workspaces/${id}/snapshots`;
const list = async (client: Client, id: string) => (await client.get<Snapshots>(snapshotsPath(id))).snapshots;
const awaitSnapshots = async (client: Client, id: string): Promise<Snapshot[]> =>
  until(async () => {
    const snapshots = await list(client, id);
    return snapshots.every(({ status }) => status === "ready") && snapshots;
  });

const triggerFailpoint = async (client: Client, id: string, point: Failpoint): Promise<void> => {
  const [snapshot] = await list(client, id);
  const path = `${snapshotsPath(id)}/${snapshot?.id}`;
  // The server may die before it responds.
  const request =
    point === "home_replaced"
      ? client.post(`${path}/restore`, {})
      : point === "snapshot_discarded"
        ? client.delete(path)
        : client.post(snapshotsPath(id), { name: point });
  await request.catch(() => {});
};

test("[SN-9] killed at each failpoint, a server completes its snapshot work, and leaves nothing behind", async () => {
  await using place = await ServerSlot.make();
  let server = await place.start();
  const { admin } = await signInAdmin(place);
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id);
  await awaitBuild(admin, id);
  const folder = join(place.directory, "workspaces", id);
  const keptFile = join(folder, "home", "kept");
  const countFile = join(folder, "count");
  await until(() => existsSync(countFile));
  writeFileSync(keptFile, "first");
  await admin.post(snapshotsPath(id), { name: "first" });
  await awaitSnapshots(admin, id);
  for (const point of SNAPSHOT_FAILPOINTS) {
    await place.stop();
    server = await place.start({ env: { SLIPWAY_FAILPOINT: point } });
    const countBefore = (await list(admin, id)).length;
    writeFileSync(keptFile, point);
    await triggerFailpoint(admin, id, point);
    expect({ point, signal: (await server.ended).signal }).toEqual({ point, signal: "SIGKILL" });
    await place.start();
    if (point === "home_replaced") {
      await awaitWorkspace(
        admin,
        id,
        ({ latest_build }) => latest_build.transition === "start" && latest_build.status === "running",
      );
    }
    const snapshots = await awaitSnapshots(admin, id);
    const change = { home_replaced: 0, snapshot_discarded: -1 }[point as string] ?? 1;
    expect({ point, count: snapshots.length }).toEqual({ point, count: countBefore + change });
    // A restore brings back the content of the newest snapshot.
    if (point !== "home_replaced") expect(readFileSync(keptFile, "utf8")).toBe(point);
    else expect(readFileSync(keptFile, "utf8")).toBe("snapshot_made");
    const names = readdirSync(folder);
    expect({ point, left: names.filter((name) => /draft|replaced/.test(name)) }).toEqual({ point, left: [] });
    expect(readdirSync(join(folder, "snapshots")).sort()).toEqual(snapshots.map((snapshot) => snapshot.id).sort());
    const countAfterRestart = readFileSync(countFile, "utf8");
    await until(() => ![countAfterRestart, ""].includes(readFileSync(countFile, "utf8")), {
      what: `the workspace to continue after ${point}`,
    });
  }
  await createBuild(admin, id, "delete", { permanent: true });
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "deleted");
  expect(existsSync(folder)).toBe(false);
  await place.stop();
});
