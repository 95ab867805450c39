// Workspaces without user actions: the server stops, starts, makes dormant and deletes them automatically. The allowed actions are known in
// advance, so that a missing, duplicate or unexpected action is detected. Used by server-builds.ts.
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { openStoredData } from "#test/support/stored.ts";
import { call, read, retryUntilAnswered } from "../oracle/calls.ts";
import { makeTemplate, type World, waitForBuild } from "../server-world.ts";

const HOUR_MS = 3_600_000;
/** The error of a build that ran in too many servers that died. */
const GAVE_UP = /^The (?:server stopped|job was interrupted) \d+ times\b/;

/** Returns the builds of a workspace, oldest first. */
export const listBuilds = async ({ admin }: World, id: string): Promise<Build[]> =>
  (await read<Build[]>(admin, `/api/v2/workspaces/${id}/builds?limit=1000`)).reverse();

const formatBuild = ({ transition, reason, job }: Build): string => `${transition} (${reason}, ${job.status})`;
const formatBuilds = (builds: readonly Build[]): string => builds.map(formatBuild).join(", ");

/** Returns true if the build ended as expected: it succeeded, or was given up after two servers died with it. */
const hasEndedProperly = ({ job }: Build): boolean =>
  job.status === "succeeded" || (job.status === "failed" && GAVE_UP.test(job.error ?? ""));

/** The latest build of a workspace, and when the next stop or start is due. */
type LatestBuild = { build: string; transition: string; next_start_at: number | null; deadline: number | null };

/** Workspaces with a deadline and a daily start, which the test moves closer while no server is running. */
export class Fleet {
  readonly #world: World;
  readonly #ids: readonly string[];
  /** Latest builds whose end was moved closer: exactly one build must follow each of them. */
  readonly #expedited = new Set<string>();

  private constructor(world: World, ids: readonly string[]) {
    this.#world = world;
    this.#ids = ids;
  }

  static async make(world: World, count: number): Promise<Fleet> {
    const template_id = await makeTemplate(world, "fleet", { provisioner: "echo", resources: [{ name: "one" }] });
    // The regular start is far away, so that only scheduled actions of the test happen.
    const hour = new Date(Date.now() + 12 * HOUR_MS).getUTCHours();
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      const body = { template_id, ttl_ms: HOUR_MS, autostart_schedule: `CRON_TZ=UTC 0 ${hour} * * *` };
      const created = await world.admin.post<Workspace>("/api/v2/users/me/workspaces", { ...body, name: `fleet-${i}` });
      await waitForBuild(world.admin, created.latest_build.id);
      ids.push(created.id);
    }
    return new Fleet(world, ids);
  }

  /** Number of scheduled builds that were moved closer. */
  get scheduled(): number {
    return this.#expedited.size;
  }

  /** Makes the next stop or start of each workspace due within `ms` from now. No server may run on this directory. */
  async expediteNext(directory: string, random: () => number, ms: number): Promise<void> {
    await using stored = await openStoredData(directory);
    for (const id of this.#ids) {
      const [latest] = await stored.objects<LatestBuild>(
        `select b.id as build, b.transition, w.next_start_at, b.deadline from workspaces w
         join workspace_builds b on b.id = w.latest_build_id join jobs j on j.id = b.job_id
         where w.id = '${id}' and j.completed_at is not null and j.error = ''`,
      );
      if (!latest) continue;
      const due = Date.now() + Math.floor(random() * ms);
      if (latest.transition === "start" && latest.deadline !== null) {
        await stored.run(`update workspace_builds set deadline = ${due} where id = '${latest.build}'`);
      } else if (latest.transition === "stop" && latest.next_start_at !== null) {
        await stored.run(`update workspaces set next_start_at = ${due} where id = '${id}'`);
      } else continue;
      await stored.run(`update timers set due = ${due} where actor_id = '${id}' and name = 'schedule'`);
      this.#expedited.add(latest.build);
    }
  }

  /** Returns the latest builds and their statuses as text, to recognize changes. */
  async describeBuilds(): Promise<string> {
    const { workspaces } = await read<{ workspaces: Workspace[] }>(
      this.#world.admin,
      "/api/v2/workspaces?q=template:fleet&limit=100",
    );
    return workspaces.map(({ id, latest_build }) => `${id} ${latest_build.id} ${latest_build.status}`).join();
  }

  /** Restarts builds that were given up, because nothing restarts them automatically. */
  async restartFailed(): Promise<void> {
    const { admin } = this.#world;
    for (const id of this.#ids) {
      const { latest_build } = await read<Workspace>(admin, `/api/v2/workspaces/${id}`);
      if (latest_build.job.status !== "failed") continue;
      await call(admin, "POST", `/api/v2/workspaces/${id}/builds`, { transition: "start" });
    }
  }

  /** Returns true if every action that was moved closer has happened. */
  async isDone(): Promise<boolean> {
    for (const id of this.#ids) {
      const { latest_build } = await read<Workspace>(this.#world.admin, `/api/v2/workspaces/${id}`);
      if (latest_build.job.completed_at === undefined) return false;
      if (latest_build.job.status === "succeeded" && this.#expedited.has(latest_build.id)) return false;
    }
    return true;
  }

  /** Returns problems: each workspace must stop and start alternately, only when due, and once each time. */
  async check(): Promise<string[]> {
    const problems: string[] = [];
    for (const id of this.#ids) {
      const builds = await listBuilds(this.#world, id);
      const report = (problem: string): void => void problems.push(`${id}: ${problem}: ${formatBuilds(builds)}`);
      if (builds.some(({ build_number }, i) => build_number !== i + 1)) report("build numbers have gaps");
      for (const [i, build] of builds.entries()) {
        const previous = builds[i - 1];
        if (build.job.completed_at === undefined && i < builds.length - 1) report("an old build is active");
        if (build.job.completed_at !== undefined && !hasEndedProperly(build)) report("a build ended badly");
        if (!previous || build.reason === "initiator") continue;
        if (build.transition === previous.transition) report("a scheduled build happened twice");
        if (!this.#expedited.has(previous.id)) report("a build started before it was due");
        if (build.reason !== (build.transition === "stop" ? "autostop" : "autostart"))
          report("a build has the wrong reason");
      }
    }
    return problems;
  }
}

/** The expected automatic builds of a template's workspace: transition and reason of each. */
const COURSES = {
  fails: ["start initiator", "stop autostop"],
  sleeps: ["start initiator", "stop dormancy", "delete autodelete"],
} as const;
type Course = keyof typeof COURSES;

/** Workspaces that are created and left alone: a failed start is stopped soon; an unused workspace becomes dormant and is deleted. */
export class UnattendedWorkspaces {
  readonly #world: World;
  readonly #templates: Readonly<Record<Course, string>>;
  readonly #created: { readonly id: string; readonly course: Course }[] = [];

  private constructor(world: World, templates: Readonly<Record<Course, string>>) {
    this.#world = world;
    this.#templates = templates;
  }

  static async make(world: World): Promise<UnattendedWorkspaces> {
    const { admin } = world;
    const resources = [{ name: "one" }];
    const fails = await makeTemplate(world, "fails", { provisioner: "echo", resources, echo: { error: "as meant" } });
    const sleeps = await makeTemplate(world, "sleeps", { provisioner: "echo", resources });
    await admin.patch(`/api/v2/templates/${fails}`, { failure_ttl_ms: 400 });
    const settings = { time_til_dormant_ms: 600, time_til_dormant_autodelete_ms: 400 };
    await admin.patch(`/api/v2/templates/${sleeps}`, settings);
    return new UnattendedWorkspaces(world, { fails, sleeps });
  }

  get count(): number {
    return this.#created.length;
  }

  /** Creates one workspace of each course, exactly once even if the server dies in the meantime. */
  async add(name: string): Promise<void> {
    const { admin } = this.#world;
    for (const course of Object.keys(COURSES) as Course[]) {
      const body = { name: `${course}-${name}`, template_id: this.#templates[course] };
      const created = await retryUntilAnswered<Workspace>(async () => {
        const result = await call<Workspace>(admin, "POST", "/api/v2/users/me/workspaces", body);
        // 409: an earlier attempt has created it, and its response was lost.
        if (result.outcome !== "refused" || result.status !== 409) return result;
        return await call<Workspace>(admin, "GET", `/api/v2/users/me/workspace/${body.name}?include_deleted=true`);
      });
      this.#created.push({ id: created.id, course });
    }
  }

  /** Returns problems. With `isFinal`, also checks that each workspace has completed its course. */
  async check(isFinal = false): Promise<string[]> {
    const problems: string[] = [];
    for (const { id, course } of isFinal ? this.#created : this.#created.slice(-10)) {
      const builds = await this.#builds(id);
      const actual = builds.map(({ transition, reason }) => `${transition} ${reason}`);
      const expected = COURSES[course].slice(0, isFinal ? undefined : actual.length);
      if (actual.join() !== expected.join()) problems.push(`${course} ${id}: ${formatBuilds(builds)}`);
      const automatic = builds.slice(course === "fails" ? 1 : 0);
      const failed = automatic.filter((build) => build.job.completed_at !== undefined && !hasEndedProperly(build));
      if (failed.length > 0) problems.push(`${course} ${id}: a build ended badly: ${formatBuilds(builds)}`);
    }
    return problems;
  }

  /** Returns true if each workspace has completed its course. */
  async isDone(): Promise<boolean> {
    for (const { id, course } of this.#created) {
      const builds = await this.#builds(id);
      if (builds.length < COURSES[course].length || builds.at(-1)?.job.completed_at === undefined) return false;
    }
    return true;
  }

  #builds(id: string): Promise<Build[]> {
    return listBuilds(this.#world, id);
  }
}
