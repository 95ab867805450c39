// A Docker Engine is killed at given points of operations on a workspace's files, and restarted: each operation is complete or absent, can
// be repeated, and leaves nothing behind, and the workspace continues.
import type { Fork } from "#schema/workspaces/fork.ts";
import type { Snapshot } from "#schema/workspaces/snapshot.ts";
import type { Outage } from "#test/support/docker/engine-proxy.ts";
import { canOwnEngine } from "#test/support/docker/own-engine.ts";
import { until } from "#test/support/until.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { EngineWorld } from "./engine-world.ts";

type Operation = {
  /** Requests the operation; the response may be lost. */
  readonly request: (world: EngineWorld, id: string) => Promise<unknown>;
  /** Waits for the end of the operation. Returns true if it succeeded. */
  readonly awaitEnd: (world: EngineWorld, id: string) => Promise<boolean>;
  /** Repeats the operation, if that needs a different call. */
  readonly repeat?: (world: EngineWorld, id: string) => Promise<unknown>;
};

const workspacePath = (id: string, path: string): `/${string}` => `/api/v2/workspaces/${id}/${path}`;
const getNewest = async (world: EngineWorld, id: string): Promise<Snapshot | undefined> =>
  (await world.snapshots(id))[0];
const findBase = async (world: EngineWorld, id: string): Promise<Snapshot> => {
  const snapshot = (await world.snapshots(id)).find(({ name }) => name === "base");
  if (!snapshot) throw new Error("the first snapshot is lost");
  return snapshot;
};
const hasSucceeded = async (world: EngineWorld, id: string): Promise<boolean> =>
  (await world.awaitBuild(id)).job.status === "succeeded";
const isDone = ({ copies }: Fork): boolean => copies.every(({ status }) => status === "ready");
const awaitFork = (world: EngineWorld, id: string): Promise<Fork> =>
  until(async () => {
    const [fork] = (await world.admin.get<{ forks: Fork[] }>(workspacePath(id, "forks"))).forks;
    return fork && ["ready", "failed"].includes(fork.copies[0]?.status ?? fork.status) && fork;
  });

const requestFork = ({ admin }: EngineWorld, id: string): Promise<unknown> =>
  admin.post(workspacePath(id, "forks"), { names: [`f-${crypto.randomUUID().slice(0, 8)}`] });

const OPERATIONS = {
  snapshot: {
    request: ({ admin }, id) => admin.post(workspacePath(id, "snapshots"), { name: "more" }),
    awaitEnd: async (world, id) => (await getNewest(world, id))?.status === "ready",
  },
  restore: {
    request: async (world, id) =>
      world.admin.post(workspacePath(id, `snapshots/${(await findBase(world, id)).id}/restore`), {}),
    awaitEnd: hasSucceeded,
  },
  fork: {
    request: requestFork,
    awaitEnd: async (world, id) => isDone(await awaitFork(world, id)),
    repeat: async (world, id) => {
      const { status, copies } = await awaitFork(world, id);
      const [copy] = copies;
      // A start copies missing files. A fork that has no copy yet is requested again.
      if (status === "failed" || !copy) return requestFork(world, id);
      return world.build(copy.workspace_id, "start");
    },
  },
  backup: {
    request: ({ admin }, id) => admin.post(workspacePath(id, "home-backups"), {}),
    awaitEnd: async (world, id) => (await world.backups(id))[0]?.status === "ready",
  },
  fetch: {
    request: async (world, id) => {
      const backup = (await world.backups(id)).find(({ status }) => status === "ready");
      return world.admin.post(workspacePath(id, `home-backups/${backup?.id}/fetch`), {});
    },
    awaitEnd: async (world, id) => (await getNewest(world, id))?.status === "ready",
  },
  trash: {
    request: ({ admin }, id) => admin.post(workspacePath(id, "builds"), { transition: "delete" }),
    awaitEnd: hasSucceeded,
  },
  return: {
    request: ({ admin }, id) => admin.post(workspacePath(id, "restore"), {}),
    awaitEnd: hasSucceeded,
    // The workspace is already out of the trash; only its first build, a stop, has failed.
    repeat: (world, id) => world.build(id, "stop"),
  },
  start: {
    request: ({ admin }, id) => admin.post(workspacePath(id, "builds"), { transition: "start" }),
    awaitEnd: hasSucceeded,
  },
} satisfies Record<string, Operation>;

type Point = { readonly operation: keyof typeof OPERATIONS; readonly step: string } & Pick<
  Outage,
  "call" | "moment" | "nth"
>;

const CONTAINER = "^POST /containers/[^/]+";
const PUT_FILES = /^PUT \/containers\/[^/]+\/archive/;
const GET_FILES = /^GET \/containers\/[^/]+\/archive/;

/** Points in an order in which each operation works with the state that the previous one leaves. */
const POINTS: readonly Point[] = [
  { operation: "snapshot", step: "paused", call: new RegExp(`${CONTAINER}/pause`), moment: "after" },
  { operation: "snapshot", step: "copying", call: PUT_FILES, moment: "copying" },
  { operation: "snapshot", step: "copied", call: new RegExp(`${CONTAINER}/unpause`), moment: "before" },
  { operation: "restore", step: "stopping", call: new RegExp(`${CONTAINER}/stop`), moment: "after" },
  { operation: "restore", step: "copying", call: PUT_FILES, moment: "copying" },
  { operation: "restore", step: "decided", call: /^DELETE \/volumes\//, moment: "before" },
  { operation: "restore", step: "one of two volumes replaced", call: /^DELETE \/volumes\//, moment: "after" },
  { operation: "fork", step: "copying", call: PUT_FILES, moment: "copying" },
  { operation: "fork", step: "filling", call: PUT_FILES, moment: "copying", nth: 2 },
  { operation: "backup", step: "copying", call: PUT_FILES, moment: "copying" },
  { operation: "backup", step: "reading", call: GET_FILES, moment: "copying", nth: 2 },
  { operation: "fetch", step: "writing", call: PUT_FILES, moment: "copying" },
  { operation: "trash", step: "stopping", call: new RegExp(`${CONTAINER}/stop`), moment: "before" },
  { operation: "return", step: "searching", call: /^GET \/containers\/json/, moment: "before" },
  { operation: "start", step: "started", call: new RegExp(`${CONTAINER}/start`), moment: "after" },
];

/** Returns the word of each of the two volumes. */
const splitContents = (text: string): string[] => text.split(/\s+/).slice(0, 2);

const killEngineAt = async (world: EngineWorld, id: string, point: Point, word: string): Promise<string> => {
  const { operation, step, call, moment, nth = 1 } = point;
  const { request, awaitEnd, repeat = request }: Operation = OPERATIONS[operation];
  const name = `${operation}, ${step}`;
  const assertTrue = (isTrue: boolean, failure: string): void => {
    if (!isTrue) throw new Error(`${name}: ${failure}`);
  };
  const isRunning = operation !== "return" && operation !== "start";
  if (isRunning) await world.write(id, word);
  const killed = world.proxy.cut({ call, moment, nth, act: () => world.engine.kill() });
  await Promise.all([killed, request(world, id)]);
  await world.engine.start();
  world.proxy.reconnect();
  const isFirstDone = await awaitEnd(world, id);
  if (!isFirstDone) {
    await repeat(world, id);
    assertTrue(await awaitEnd(world, id), "the operation cannot be repeated");
  }
  if (["trash", "return"].includes(operation)) {
    await world.waitUntilConsistent(id);
    return `${name}: ${isFirstDone ? "done" : "repeated"}`;
  }
  if (world.livesOn || isFirstDone) await world.waitUntilConsistent(id);
  // A killed engine does not always restart its containers.
  if (!(await world.isRunning(id))) {
    assertTrue(!world.livesOn || operation === "restore", "the workspace does not run");
    await world.build(id, "start");
  }
  const [home, data] = splitContents(await world.read(id));
  assertTrue(home === data, `the volumes are from different times: ${home} and ${data}`);
  if (operation === "restore") assertTrue(home === "base", `${home} instead of the snapshot's files`);
  else if (operation !== "start") assertTrue(home === word, `${home} instead of ${word}`);
  await world.waitUntilCounterRuns(id);
  await world.waitUntilConsistent(id);
  return `${name}: ${isFirstDone ? "done" : "repeated"}`;
};

/** Kills the engine at each point, `rounds` times. Returns a one-line summary. */
const serverEngine = async ({ rounds, log }: CheckOptions, ...options: string[]): Promise<string> => {
  await using world = await EngineWorld.open(...options);
  let repeated = 0;
  for (let round = 1; round <= rounds; round++) {
    const id = await world.makeWorkspace(`dev-${round}`);
    await world.write(id, "base");
    await world.admin.post(workspacePath(id, "snapshots"), { name: "base" });
    await world.snapshots(id);
    for (const point of POINTS) {
      const result = await killEngineAt(world, id, point, crypto.randomUUID().slice(0, 8));
      if (result.endsWith("repeated")) repeated += 1;
      log(result);
    }
    const forks = (await world.admin.get<{ forks: Fork[] }>(workspacePath(id, "forks"))).forks;
    for (const { workspace_id } of forks.flatMap(({ copies }) => copies)) {
      await world.build(workspace_id, "delete", { permanent: true }).catch(() => {});
    }
    await world.build(id, "delete", { permanent: true });
    const leftovers = [
      ...(await world.volumes("slipway.workspace_id")),
      ...(await world.volumes("slipway.snapshot_id")),
    ];
    if (leftovers.length > 0) throw new Error(`left after everything was deleted: ${leftovers}`);
  }
  return `${rounds} times killed at ${POINTS.length} points, ${repeated} operations were repeated, nothing lost or left over`;
};

export const checks: Check[] = canOwnEngine
  ? [
      { name: "docker: engine killed", run: (options) => serverEngine(options) },
      {
        name: "docker: engine killed, containers live on",
        run: (options) => serverEngine(options, "--live-restore"),
      },
    ]
  : [];
