// The server is killed at random moments while people build and claim prebuilt workspaces, and while it automatically stops, starts, makes
// dormant and deletes workspaces: no build is lost, duplicated or left pending, no workspace has two at a time, and no prebuilt workspace
// is claimed twice (rules CR-2, CR-17).
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { randomFrom } from "#test/support/random.ts";
import { openStoredData } from "#test/support/stored.ts";
import { until } from "#test/support/until.ts";
import { BuildLoad, type Kind, MANIFESTS } from "../oracle/build-load.ts";
import { read } from "../oracle/calls.ts";
import { findDatabaseProblems } from "../oracle/database.ts";
import { ServerSlot } from "../server.ts";
import { assertNoProblems } from "../server-crash.ts";
import { makeTemplate, signInAdmin, type World } from "../server-world.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { Fleet, UnattendedWorkspaces } from "./server-builds-fleet.ts";
import { PrebuildClaimer } from "./server-prebuilds.ts";

const ENV = { SLIPWAY_PROVISIONER_SLOTS: "5" };
const FLEET_SIZE = 6;
const PREBUILD_COUNT = 4;
/** How far ahead scheduled actions are moved, so that they fall due while the next server runs. Its scheduler ticks once a second. */
const SCHEDULE_AHEAD_MS = 1_600;
/** How long a person keeps a claimed workspace, so that other prebuilds can be created. */
const CLAIM_HOLD_MS = 250;
/** A timer whose actor was unreachable is retried after half a minute. */
const WAIT_TIMEOUT_MS = 90_000;
const PREBUILD_MANIFEST: Manifest = {
  provisioner: "echo",
  presets: [{ name: "Ready", parameters: {}, prebuilds: PREBUILD_COUNT }],
  resources: [{ name: "main" }],
};

const makeBuilders = async (world: World, random: () => number): Promise<BuildLoad[]> => {
  const templates = {} as Record<Kind, string>;
  for (const kind of ["succeeds", "fails", "hangs"] as const) {
    templates[kind] = await makeTemplate(world, `people-${kind}`, MANIFESTS[kind]);
  }
  const kinds: Kind[] = ["succeeds", "succeeds", "hangs", "fails"];
  return ["p0", "p1"].map((name) => new BuildLoad({ name, admin: world.admin, templates, kinds, random }));
};

/** Returns the request for a prebuilt workspace. */
const buildClaimRequest = async (world: World): Promise<object> => {
  const template_id = await makeTemplate(world, "kept", PREBUILD_MANIFEST);
  const template = await read<{ active_version_id: string }>(world.admin, `/api/v2/templates/${template_id}`);
  const version = `/api/v2/templateversions/${template.active_version_id}`;
  const presets = await read<{ id: string }[]>(world.admin, `${version}/presets`);
  return { template_id, template_version_preset_id: presets[0]?.id };
};

/** Returns problems with the workspaces that these people claimed. `holders` has all earlier claims, and receives these. */
const findClaimProblems = async (
  world: World,
  claimers: readonly PrebuildClaimer[],
  holders: Map<string, string>,
): Promise<string[]> => {
  const problems = claimers.flatMap((claimer) => claimer.problems);
  for (const [name, id] of claimers.flatMap((claimer) => [...claimer.claims])) {
    const otherName = holders.get(id);
    if (otherName !== undefined && otherName !== name)
      problems.push(`${id} was claimed as ${name} and as ${otherName}`);
    holders.set(id, name);
    const workspace = await read<Workspace>(world.admin, `/api/v2/workspaces/${id}`);
    if (workspace.name !== name || workspace.owner_name !== "admin")
      problems.push(`${name} is ${workspace.owner_name}/${workspace.name}`);
  }
  return problems;
};

/**
 * Returns true if no prebuilt workspace is being built: all are ready, or one has failed because its server was killed, and waits for its
 * retry (rule PB-4).
 */
const arePrebuildsSettled = async ({ admin }: World): Promise<boolean> => {
  const { workspaces } = await read<{ workspaces: Workspace[] }>(admin, "/api/v2/workspaces?q=owner:prebuilds");
  const builds = workspaces.map(({ latest_build }) => latest_build);
  if (builds.some(({ job }) => job.completed_at === undefined)) return false;
  return (
    builds.filter(({ status }) => status === "running").length === PREBUILD_COUNT ||
    builds.some(({ status }) => status === "failed")
  );
};

/** Returns what an idle server must not have: open jobs, and timers that are long overdue. */
const findLeftovers = async (directory: string): Promise<string[]> => {
  await using stored = await openStoredData(directory);
  const jobs = await stored.rows("select id, input from jobs where completed_at is null");
  const timers = await stored.rows(`select id from timers where due < ${Date.now() - 10_000}`);
  return [
    ...jobs.map((job) => `a job is still open: ${JSON.stringify(job)}`),
    ...timers.map((timer) => `a timer is overdue: ${timer}`),
  ];
};

/** Kills the server `rounds` times. Returns a one-line summary. */
export const serverBuilds = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make();
  const random = randomFrom(seed);
  let server = await place.start({ env: ENV });
  const world = await signInAdmin(place);
  const [fleet, unattended] = [await Fleet.make(world, FLEET_SIZE), await UnattendedWorkspaces.make(world)];
  const claimRequest = await buildClaimRequest(world);
  const builders = await makeBuilders(world, random);
  const holders = new Map<string, string>();
  let killsNearBuild = 0;
  const people = builders.map((builder) => builder.run());
  try {
    for (let round = 1; round <= rounds; round++) {
      const claimers = [new PrebuildClaimer(), new PrebuildClaimer()];
      const claiming = claimers.map((claimer, i) =>
        claimer.run(world, `r${round}t${i}`, claimRequest, () => {}, CLAIM_HOLD_MS),
      );
      const adding = unattended.add(`${round}`);
      if (await waitForKill(fleet, random)) killsNearBuild += 1;
      server.kill("SIGKILL");
      await server.ended;
      for (const claimer of claimers) claimer.stop();
      assertNoProblems(seed, `kill ${round}`, await findDatabaseProblems(place.directory));
      // In some rounds, the test changes nothing, so that the next server must recover the dead server's log.
      if (round % 3 > 0) await fleet.expediteNext(place.directory, random, SCHEDULE_AHEAD_MS);
      server = await place.start({ env: ENV });
      await Promise.all([...claiming, adding]);
      const problems = [
        await fleet.check(),
        await unattended.check(),
        await findClaimProblems(world, claimers, holders),
      ];
      for (const builder of builders) problems.push(await builder.check());
      assertNoProblems(seed, `kill ${round}`, problems.flat());
      await fleet.restartFailed();
      log(`kill ${round}: ${fleet.scheduled} scheduled, ${unattended.count} unattended, ${holders.size} claimed`);
    }
  } finally {
    for (const builder of builders) builder.stop();
  }
  await Promise.all(people);
  const waits = {
    "the fleet": () => fleet.isDone(),
    "the unattended workspaces": () => unattended.isDone(),
    "the prebuilds": () => arePrebuildsSettled(world),
  };
  for (const [waitedFor, isDone] of Object.entries(waits)) {
    await until(isDone, { timeoutMs: WAIT_TIMEOUT_MS }).catch(async (error: unknown) => {
      const problems = [
        ...(await fleet.check()),
        ...(await unattended.check(true)),
        ...(await findLeftovers(place.directory)),
      ];
      throw new Error(`seed ${seed}, the end: ${waitedFor} did not settle (${problems.join("; ")})`, { cause: error });
    });
  }
  const problems = [await fleet.check(), await unattended.check(true)];
  for (const builder of builders) problems.push(await builder.check(true));
  let claimed = 0;
  for (const [id, name] of holders) {
    let workspace: Workspace | undefined;
    await until(async () => {
      workspace = await read<Workspace>(world.admin, `/api/v2/workspaces/${id}`);
      return workspace.latest_build.job.completed_at !== undefined;
    });
    if (workspace?.name !== name) problems.push([`${id} was claimed as ${name} and is now ${workspace?.name}`]);
    if (workspace?.latest_build.build_number === 2) claimed += 1;
  }
  await place.stop();
  assertNoProblems(seed, "the end", [
    ...problems.flat(),
    ...(await findDatabaseProblems(place.directory)),
    ...(await findLeftovers(place.directory)),
  ]);
  const built = builders.reduce((sum, { counts }) => sum + counts.builds, 0);
  return (
    `${rounds} kills (${killsNearBuild} within 20 ms of a scheduled build), ${built} builds by people, ${fleet.scheduled} scheduled, ` +
    `${unattended.count} unattended workspaces, ${holders.size} claims (${claimed} of prebuilds), none lost or duplicated`
  );
};

/** Waits until the kill: just after the next scheduled build starts (returns true), or at a random moment (returns false). */
const waitForKill = async (fleet: Fleet, random: () => number): Promise<boolean> => {
  const deadline = performance.now() + 100 + random() * (SCHEDULE_AHEAD_MS + 800);
  if (random() < 0.4) {
    await Bun.sleep(deadline - performance.now());
    return false;
  }
  const before = await fleet.describeBuilds();
  while (performance.now() < deadline) {
    await Bun.sleep(5);
    if ((await fleet.describeBuilds()) === before) continue;
    await Bun.sleep(random() * 20);
    return true;
  }
  return false;
};

export const checks: readonly Check[] = [{ name: "server: builds by people and by the scheduler", run: serverBuilds }];
