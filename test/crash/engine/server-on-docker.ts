// A server is killed at each failpoint of operations on a Docker workspace's files: the next server completes what was started, the
// workspace continues, and the engine has nothing left over.
import { type Failpoint, FORK_FAILPOINTS, HOME_BACKUP_FAILPOINTS, SNAPSHOT_FAILPOINTS } from "#base/failpoint.ts";
import { canOwnEngine } from "#test/support/docker/own-engine.ts";
import { until } from "#test/support/until.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { EngineWorld } from "./engine-world.ts";

/** Failpoints of chats are left out, because there is no model. Fetched backups and deleted snapshots have separate requests. */
const POINTS: readonly Failpoint[] = [
  ...SNAPSHOT_FAILPOINTS,
  ...FORK_FAILPOINTS.filter((point) => point !== "fork_chats"),
  ...HOME_BACKUP_FAILPOINTS,
];

const workspacePath = (id: string, path: string): `/${string}` => `/api/v2/workspaces/${id}/${path}`;

/** Makes the requests that reach the failpoint; the server may die before it responds. */
const triggerFailpoint = async (world: EngineWorld, id: string, point: Failpoint): Promise<void> => {
  const { admin } = world;
  const [snapshot] = await world.snapshots(id);
  const [backup] = await world.backups(id);
  const request = (): Promise<unknown> => {
    if (point === "home_replaced") return admin.post(workspacePath(id, `snapshots/${snapshot?.id}/restore`), {});
    if (point === "snapshot_discarded") return admin.delete(workspacePath(id, `snapshots/${snapshot?.id}`));
    if (point === "home_backup_fetched") return admin.post(workspacePath(id, `home-backups/${backup?.id}/fetch`), {});
    if (point.startsWith("home_backup")) return admin.post(workspacePath(id, "home-backups"), {});
    if (point.startsWith("fork")) return admin.post(workspacePath(id, "forks"), { names: [point.replace("_", "-")] });
    return admin.post(workspacePath(id, "snapshots"), { name: point });
  };
  await request().catch(() => {});
};

/** Kills a server at each failpoint, `rounds` times. Returns a one-line summary. */
const serverOnDocker = async ({ rounds, log }: CheckOptions): Promise<string> => {
  await using world = await EngineWorld.open();
  const { place, admin, env } = world;
  for (let round = 1; round <= rounds; round++) {
    const id = await world.makeWorkspace(`dev-${round}`);
    await world.write(id, "first");
    await admin.post(workspacePath(id, "snapshots"), { name: "first" });
    await admin.post(workspacePath(id, "home-backups"), {});
    await world.backups(id);
    let word = "first";
    for (const point of POINTS) {
      await place.stop();
      const server = await place.start({ env: { ...env, SLIPWAY_FAILPOINT: point } });
      if (point !== "home_replaced") {
        word = point;
        await world.write(id, word);
      }
      const idsBefore = (await world.snapshots(id)).map((snapshot) => snapshot.id);
      await triggerFailpoint(world, id, point);
      const { signal, errors } = await server.ended;
      if (signal !== "SIGKILL") throw new Error(`${point} was not reached: ${errors}`);
      await place.start({ env });
      await world.awaitBuild(id);
      await until(
        async () => (await world.containers(`slipway.workspace_id=${id}`)).some(({ State }) => State === "running"),
        {
          what: `${point}: the workspace to run`,
        },
      );
      await world.backups(id);
      if (point.startsWith("fork")) {
        const [copy] = (await world.fork(id)).copies;
        if (copy?.status !== "ready") throw new Error(`${point}: the fork is ${copy?.status}: ${copy?.error}`);
        await world.build(copy.workspace_id, "start");
        const [home, data] = (await world.read(copy.workspace_id)).split(/\s+/);
        if (home !== word || data !== word) throw new Error(`${point}: the fork has ${home} and ${data}`);
        await world.build(copy.workspace_id, "delete", { permanent: true });
      }
      // A restore brings back the content of the newest snapshot.
      if (point === "home_replaced") word = "snapshot_made";
      const [home, data] = (await world.read(id)).split(/\s+/);
      if (home !== word || data !== word) throw new Error(`${point}: ${home} and ${data} instead of ${word}`);
      const createdCount = (await world.snapshots(id)).filter((snapshot) => !idsBefore.includes(snapshot.id)).length;
      const expectedCount = point === "home_backup_fetched" || /^snapshot_(frozen|copied|made)$/.test(point) ? 1 : 0;
      if (createdCount !== expectedCount)
        throw new Error(`${point}: ${createdCount} snapshots were made instead of ${expectedCount}`);
      await world.waitUntilCounterRuns(id);
      await world.waitUntilConsistent(id);
      log(`${point}: completed`);
    }
    await world.build(id, "delete", { permanent: true });
    const leftovers = [
      ...(await world.volumes("slipway.workspace_id")),
      ...(await world.volumes("slipway.snapshot_id")),
    ];
    if (leftovers.length > 0) throw new Error(`left after everything was deleted: ${leftovers}`);
  }
  return `${rounds} times killed at ${POINTS.length} failpoints with a workspace of two volumes, all operations were completed, nothing left over`;
};

export const checks: Check[] = canOwnEngine ? [{ name: "docker: server killed", run: serverOnDocker }] : [];
