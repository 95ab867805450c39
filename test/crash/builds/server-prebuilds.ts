// The server is killed at random moments while people claim prebuilt workspaces: no prebuild is claimed twice, no acknowledged claim is
// lost, and afterwards the required number of prebuilds is ready again (rule PB-14).
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { randomFrom } from "#test/support/random.ts";
import { until } from "#test/support/until.ts";
import { call, PAUSE_MS, read } from "../oracle/calls.ts";
import { findDatabaseProblems } from "../oracle/database.ts";
import { ServerSlot } from "../server.ts";
import { assertNoProblems } from "../server-crash.ts";
import { makeTemplate, signInAdmin, type World } from "../server-world.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";

const PREBUILD_COUNT = 3;
const PEOPLE = 4;
const ENV = { SLIPWAY_PROVISIONER_SLOTS: "4" };
const MANIFEST: Manifest = {
  provisioner: "echo",
  presets: [{ name: "Ready", parameters: {}, prebuilds: PREBUILD_COUNT }],
  resources: [{ name: "main" }],
};

type Page = { workspaces: Workspace[] };
const listOwned = async ({ admin }: World, owner: string): Promise<Workspace[]> =>
  (await read<Page>(admin, `/api/v2/workspaces?q=owner:${owner}`)).workspaces;

/** A person who claims one workspace after the other, under unique names, and records the result of each request. */
export class PrebuildClaimer {
  /** Returned workspace IDs by requested name. */
  readonly claims = new Map<string, string>();
  readonly requestedNames = new Set<string>();
  readonly problems: string[] = [];
  #stopped = false;

  async run({ admin }: World, person: string, body: object, onAnswer: () => void, pause = PAUSE_MS): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const name = `${person}-${n}`;
      this.requestedNames.add(name);
      const result = await call<Workspace>(admin, "POST", "/api/v2/users/me/workspaces", { ...body, name });
      if (result.outcome === "acknowledged") this.claims.set(name, result.answer.id);
      else if (result.outcome === "refused")
        this.problems.push(`${name}: refused with ${result.status} ${result.message}`);
      onAnswer();
      await Bun.sleep(pause);
    }
  }

  stop(): void {
    this.#stopped = true;
  }
}

/** Returns problems with the owners of workspaces. A list may miss concurrent changes, so missing workspaces are loaded by ID. */
const findProblems = async (world: World, claimers: readonly PrebuildClaimer[]): Promise<string[]> => {
  const problems = claimers.flatMap((claimer) => claimer.problems);
  const claimed = await listOwned(world, "me");
  const byName = new Map(claimed.map((workspace) => [workspace.name, workspace]));
  const holders = new Map<string, string>();
  for (const [name, id] of claimers.flatMap((claimer) => [...claimer.claims])) {
    if (holders.has(id)) problems.push(`${id} was returned for both ${name} and ${holders.get(id)}`);
    holders.set(id, name);
    const listed = byName.get(name);
    const workspace = listed ?? (await read<Workspace>(world.admin, `/api/v2/workspaces/${id}`).catch(() => undefined));
    if (workspace?.id !== id || workspace.name !== name)
      problems.push(`${name} was returned as ${id} but is now ${workspace?.id ?? "missing"}`);
  }
  const allRequestedNames = new Set(claimers.flatMap((claimer) => [...claimer.requestedNames]));
  for (const { name } of claimed)
    if (!allRequestedNames.has(name)) problems.push(`${name} exists but was never requested`);
  return problems;
};

/** Kills the server `rounds` times. Returns a one-line summary. */
export const serverPrebuilds = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make();
  const random = randomFrom(seed);
  let server = await place.start({ env: ENV });
  const world = await signInAdmin(place);
  const template_id = await makeTemplate(world, "kept", MANIFEST);
  const { active_version_id } = await read<{ active_version_id: string }>(
    world.admin,
    `/api/v2/templates/${template_id}`,
  );
  const presets = await read<{ id: string }[]>(world.admin, `/api/v2/templateversions/${active_version_id}/presets`);
  const body = { template_id, template_version_preset_id: presets[0]?.id };
  const isReady = ({ latest_build }: Workspace): boolean => latest_build.status === "running";
  const areAllReady = async (): Promise<boolean> => {
    const prebuilds = await listOwned(world, "prebuilds");
    return prebuilds.length === PREBUILD_COUNT && prebuilds.every(isReady);
  };
  const claimers: PrebuildClaimer[] = [];
  for (let round = 1; round <= rounds; round++) {
    await until(areAllReady);
    let answerCount = 0;
    const group = Array.from({ length: PEOPLE }, () => new PrebuildClaimer());
    claimers.push(...group);
    const running = group.map((claimer, i) => claimer.run(world, `r${round}p${i}`, body, () => (answerCount += 1)));
    // Kills the server at a random point during or between the first claims.
    const killAfter = Math.floor(random() * 8);
    await until(async () => answerCount >= killAfter);
    await Bun.sleep(random() * 10);
    server.kill("SIGKILL");
    await server.ended;
    for (const claimer of group) claimer.stop();
    await Promise.all(running);
    assertNoProblems(seed, `kill ${round}`, await findDatabaseProblems(place.directory));
    server = await place.start({ env: ENV });
    assertNoProblems(seed, `kill ${round}`, await findProblems(world, claimers));
    log(`kill ${round}: ${answerCount} answers`);
  }
  await until(areAllReady);
  await until(async () => (await listOwned(world, "me")).every(isReady));
  const ownWorkspaces = await listOwned(world, "me");
  assertNoProblems(seed, "the end", await findProblems(world, claimers));
  await place.stop();
  assertNoProblems(seed, "the end", await findDatabaseProblems(place.directory));
  const claimed = ownWorkspaces.filter(({ latest_build }) => latest_build.build_number === 2).length;
  return `${rounds} kills, ${ownWorkspaces.length} workspaces created, ${claimed} of them from prebuilds, none claimed twice, none lost`;
};

export const checks: readonly Check[] = [{ name: "server: claims of prebuilds", run: serverPrebuilds }];
