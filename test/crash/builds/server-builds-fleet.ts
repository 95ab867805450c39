// Workspaces that nobody touches: their server stops, starts, puts to sleep and deletes them on its own. What it may do to each is known
// beforehand, so anything left out, doubled or made up shows. Used by server-builds.ts.
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { openStored } from "#test/support/stored.ts";
import { call, insist, read } from "../oracle/calls.ts";
import { endedBuild, makeTemplate, type World } from "../server-world.ts";

const HOUR_MS = 3_600_000;
/** A build that was under way in too many servers that died. */
const GAVE_UP = /^The (?:server stopped|job was interrupted) \d+ times\b/;

/** The builds of a workspace, the oldest first. */
export const buildsOf = async ({ admin }: World, id: string): Promise<Build[]> =>
  (await read<Build[]>(admin, `/api/v2/workspaces/${id}/builds?limit=1000`)).reverse();

const wordOf = ({ transition, reason, job }: Build): string => `${transition} (${reason}, ${job.status})`;
const inWords = (builds: readonly Build[]): string => builds.map(wordOf).join(", ");

/** True when it ended as it must: well, or given up after two servers died with it. */
const endedProperly = ({ job }: Build): boolean =>
  job.status === "succeeded" || (job.status === "failed" && GAVE_UP.test(job.error ?? ""));

/** The latest build of a workspace, and when the next is due. */
type Latest = { build: string; transition: string; wakes: number | null; ends: number | null };

/** Workspaces with a deadline and a daily start, both of which the test brings near while no server runs. */
export class Fleet {
  readonly #world: World;
  readonly #ids: readonly string[];
  /** Latest builds whose end was brought near: exactly one more build must follow each. */
  readonly #moved = new Set<string>();

  private constructor(world: World, ids: readonly string[]) {
    this.#world = world;
    this.#ids = ids;
  }

  static async make(world: World, count: number): Promise<Fleet> {
    const template_id = await makeTemplate(world, "fleet", { provisioner: "echo", resources: [{ name: "one" }] });
    // Its own time to start is far away, so that only what the test brings near comes.
    const hour = new Date(Date.now() + 12 * HOUR_MS).getUTCHours();
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      const body = { template_id, ttl_ms: HOUR_MS, autostart_schedule: `CRON_TZ=UTC 0 ${hour} * * *` };
      const made = await world.admin.post<Workspace>("/api/v2/users/me/workspaces", { ...body, name: `fleet-${i}` });
      await endedBuild(world.admin, made.latest_build.id);
      ids.push(made.id);
    }
    return new Fleet(world, ids);
  }

  /** How many scheduled builds were brought near. */
  get scheduled(): number {
    return this.#moved.size;
  }

  /** Lets the next stop or start of each become due within `ms` from now. No server may run on this directory. */
  async bringNear(directory: string, random: () => number, ms: number): Promise<void> {
    await using stored = await openStored(directory);
    for (const id of this.#ids) {
      const [found] = await stored.objects<Latest>(
        `select b.id as build, b.transition, w.next_start_at as wakes, b.deadline as ends from workspaces w
         join workspace_builds b on b.id = w.latest_build_id join jobs j on j.id = b.job_id
         where w.id = '${id}' and j.completed_at is not null and j.error = ''`,
      );
      if (!found) continue;
      const due = Date.now() + Math.floor(random() * ms);
      if (found.transition === "start" && found.ends !== null) {
        await stored.run(`update workspace_builds set deadline = ${due} where id = '${found.build}'`);
      } else if (found.transition === "stop" && found.wakes !== null) {
        await stored.run(`update workspaces set next_start_at = ${due} where id = '${id}'`);
      } else continue;
      await stored.run(`update timers set due = ${due} where actor_id = '${id}' and name = 'schedule'`);
      this.#moved.add(found.build);
    }
  }

  /** What each is about, in one text that changes when anything happens. */
  async pulse(): Promise<string> {
    const { workspaces } = await read<{ workspaces: Workspace[] }>(
      this.#world.admin,
      "/api/v2/workspaces?q=template:fleet&limit=100",
    );
    return workspaces.map(({ id, latest_build }) => `${id} ${latest_build.id} ${latest_build.status}`).join();
  }

  /** Starts again by hand what was given up: nothing happens to it on its own. */
  async mend(): Promise<void> {
    const { admin } = this.#world;
    for (const id of this.#ids) {
      const { latest_build } = await read<Workspace>(admin, `/api/v2/workspaces/${id}`);
      if (latest_build.job.status !== "failed") continue;
      await call(admin, "POST", `/api/v2/workspaces/${id}/builds`, { transition: "start" });
    }
  }

  /** True when everything that was brought near has come. */
  async isDone(): Promise<boolean> {
    for (const id of this.#ids) {
      const { latest_build } = await read<Workspace>(this.#world.admin, `/api/v2/workspaces/${id}`);
      if (latest_build.job.completed_at === undefined) return false;
      if (latest_build.job.status === "succeeded" && this.#moved.has(latest_build.id)) return false;
    }
    return true;
  }

  /** What is wrong now: it goes on and off in turn, by its times alone, and each time once. */
  async check(): Promise<string[]> {
    const wrong: string[] = [];
    for (const id of this.#ids) {
      const builds = await buildsOf(this.#world, id);
      const say = (what: string): void => void wrong.push(`${id}: ${what}: ${inWords(builds)}`);
      if (builds.some(({ build_number }, i) => build_number !== i + 1)) say("numbers with gaps");
      for (const [i, build] of builds.entries()) {
        const before = builds[i - 1];
        if (build.job.completed_at === undefined && i < builds.length - 1) say("an old build is active");
        if (build.job.completed_at !== undefined && !endedProperly(build)) say("a build ended badly");
        if (!before || build.reason === "initiator") continue;
        if (build.transition === before.transition) say("a scheduled build came twice");
        if (!this.#moved.has(before.id)) say("a scheduled build that was not due");
        if (build.reason !== (build.transition === "stop" ? "autostop" : "autostart")) say("a wrong reason");
      }
    }
    return wrong;
  }
}

/** What becomes of a workspace of a template on its own: transition and reason of each build. */
const COURSES = {
  fails: ["start initiator", "stop autostop"],
  sleeps: ["start initiator", "stop dormancy", "delete autodelete"],
} as const;
type Course = keyof typeof COURSES;

/** Workspaces that are made and left alone: a start that fails is stopped soon, an unused one falls asleep and is deleted. */
export class LeftAlone {
  readonly #world: World;
  readonly #templates: Readonly<Record<Course, string>>;
  readonly #made: { readonly id: string; readonly course: Course }[] = [];

  private constructor(world: World, templates: Readonly<Record<Course, string>>) {
    this.#world = world;
    this.#templates = templates;
  }

  static async make(world: World): Promise<LeftAlone> {
    const { admin } = world;
    const resources = [{ name: "one" }];
    const fails = await makeTemplate(world, "fails", { provisioner: "echo", resources, echo: { error: "as meant" } });
    const sleeps = await makeTemplate(world, "sleeps", { provisioner: "echo", resources });
    await admin.patch(`/api/v2/templates/${fails}`, { failure_ttl_ms: 400 });
    const times = { time_til_dormant_ms: 600, time_til_dormant_autodelete_ms: 400 };
    await admin.patch(`/api/v2/templates/${sleeps}`, times);
    return new LeftAlone(world, { fails, sleeps });
  }

  get count(): number {
    return this.#made.length;
  }

  /** Makes one of each; whatever the server dies of in the meantime, it is made once. */
  async add(name: string): Promise<void> {
    const { admin } = this.#world;
    for (const course of Object.keys(COURSES) as Course[]) {
      const body = { name: `${course}-${name}`, template_id: this.#templates[course] };
      const made = await insist<Workspace>(async () => {
        const said = await call<Workspace>(admin, "POST", "/api/v2/users/me/workspaces", body);
        // 409: an earlier try whose answer was lost has made it.
        if (said.fate !== "refused" || said.status !== 409) return said;
        return await call<Workspace>(admin, "GET", `/api/v2/users/me/workspace/${body.name}?include_deleted=true`);
      });
      this.#made.push({ id: made.id, course });
    }
  }

  /** What is wrong now; `all`: it must have come to its end. */
  async check(all = false): Promise<string[]> {
    const wrong: string[] = [];
    for (const { id, course } of all ? this.#made : this.#made.slice(-10)) {
      const builds = await this.#builds(id);
      const seen = builds.map(({ transition, reason }) => `${transition} ${reason}`);
      const wanted = COURSES[course].slice(0, all ? undefined : seen.length);
      if (seen.join() !== wanted.join()) wrong.push(`${course} ${id}: ${inWords(builds)}`);
      const later = builds.slice(course === "fails" ? 1 : 0);
      const bad = later.filter((build) => build.job.completed_at !== undefined && !endedProperly(build));
      if (bad.length > 0) wrong.push(`${course} ${id}: a build ended badly: ${inWords(builds)}`);
    }
    return wrong;
  }

  /** True when each has come to the end of its course. */
  async isDone(): Promise<boolean> {
    for (const { id, course } of this.#made) {
      const builds = await this.#builds(id);
      if (builds.length < COURSES[course].length || builds.at(-1)?.job.completed_at === undefined) return false;
    }
    return true;
  }

  #builds(id: string): Promise<Build[]> {
    return buildsOf(this.#world, id);
  }
}
