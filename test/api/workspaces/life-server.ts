// Workspaces on a running server, through the public client, with time controlled by the test: the second real implementation for the steps
// of test/actors/workspace/life-commands.ts. One server serves all runs, each with its own workspaces.
import { listDueTimers } from "#db/engine/timers.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Template } from "#schema/templates/template.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import type { Real } from "#test/actors/workspace/life-commands.ts";
import type { Rules, Step, Version, View } from "#test/actors/workspace/life-model.ts";
import { toCron } from "#test/actors/workspace/life-pure.ts";
import { getContext } from "#test/support/seed.ts";
import { importVersion, makeTemplate } from "#test/support/templates.ts";
import { type ClockWorld, openClockWorld } from "./clock-world.ts";

const toManifest = (echo: Manifest["echo"], more: Partial<Manifest> = {}): string =>
  JSON.stringify({ provisioner: "echo", resources: [{ name: "main" }], ...(echo ? { echo } : {}), ...more });
/** One large workspace is prebuilt; the steps create small ones. */
const GOOD = toManifest(undefined, {
  parameters: [{ name: "size", default: "small" }],
  presets: [{ name: "Ready", parameters: { size: "large" }, prebuilds: 1 }],
});

type Page = { workspaces: Workspace[] };
/** A template, its preset and its versions, from which the steps create workspaces. */
type Choices = {
  readonly template_id: string;
  readonly preset: string;
  readonly versions: Readonly<Record<Version, string>>;
};

const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const parseTime = (text: string | undefined): number | null => (text === undefined ? null : Date.parse(text));

/** Creates a template with these rules, its preset and its versions. */
const createTemplate = async (admin: Client, rules: Rules): Promise<Choices> => {
  const { id, active_version_id } = await makeTemplate(admin, GOOD);
  const importWith = async (echo: Manifest["echo"]): Promise<string> =>
    (await importVersion(admin, toManifest(echo), { template_id: id })).id;
  const versions = {
    good: active_version_id,
    bad: await importWith({ error: "as meant" }),
    hang: await importWith({ hang: true }),
  };
  await admin.patch<Template>(`/api/v2/templates/${id}`, {
    failure_ttl_ms: rules.failure_ttl,
    time_til_dormant_ms: rules.til_dormant,
    time_til_dormant_autodelete_ms: rules.autodelete,
  });
  const presets = await admin.get<{ id: string }[]>(`/api/v2/templateversions/${active_version_id}/presets`);
  return { template_id: id, preset: presets[0]?.id as string, versions };
};

export class ServerLives implements Real {
  readonly #world: ClockWorld;
  readonly #choices: Choices;
  readonly #ids: string[] = [];
  static #createdCount = 0;

  private constructor(world: ClockWorld, choices: Choices) {
    this.#world = world;
    this.#choices = choices;
  }

  async applyStep(step: Step): Promise<number> {
    if (step.do === "wait") this.#world.clock.leap(step.ms);
    if (step.do === "claim") await this.#awaitReady();
    const status = await this.#sendRequest(step);
    await this.#settle();
    return status;
  }

  async #sendRequest(step: Step): Promise<number> {
    const { owner } = this.#world;
    const id = this.#ids[step.workspaceIndex % this.#ids.length] ?? "";
    const path = `/api/v2/workspaces/${id}`;
    switch (step.do) {
      case "wait":
        return 200;
      case "create":
        return await this.#create({ template_version_id: this.#choices.versions[step.version] }, step);
      case "claim":
        return await this.#create(
          { template_version_id: this.#choices.versions.good, template_version_preset_id: this.#choices.preset },
          step,
        );
      case "build": {
        const version =
          step.transition === "start" ? { template_version_id: this.#choices.versions[step.version] } : {};
        return await awaitStatus(owner.post(`${path}/builds`, { transition: step.transition, ...version }));
      }
      case "cancel": {
        const { latest_build } = await this.#read(id);
        return await awaitStatus(owner.patch(`/api/v2/workspacebuilds/${latest_build.id}/cancel`));
      }
      case "use":
        return await awaitStatus(owner.post(`${path}/usage`));
      case "extend": {
        const deadline = new Date(this.#world.clock.now() + step.by).toISOString();
        return await awaitStatus(owner.put(`${path}/extend`, { deadline }));
      }
      case "ttl":
        return await awaitStatus(owner.put(`${path}/ttl`, { ttl_ms: step.ms }));
      case "autostart":
        return await awaitStatus(owner.put(`${path}/autostart`, { schedule: toCron(step.hour) }));
      case "dormant":
        return await awaitStatus(owner.put(`${path}/dormant`, { dormant: step.on }));
      case "favorite":
        return await awaitStatus(step.on ? owner.put(`${path}/favorite`) : owner.delete(`${path}/favorite`));
    }
  }

  async #create(body: object, { ttl, hour }: { ttl: number | null; hour: number | null }): Promise<number> {
    ServerLives.#createdCount += 1;
    const workspaceBody = { name: `life-${ServerLives.#createdCount}`, ttl_ms: ttl, autostart_schedule: toCron(hour) };
    const { id } = await this.#world.owner.post<Workspace>("/api/v2/users/me/workspaces", {
      ...body,
      ...workspaceBody,
    });
    this.#ids.push(id);
    return 200;
  }

  /** Waits until the only prebuilt workspace of the template can be claimed. */
  async #awaitReady(): Promise<void> {
    for (;;) {
      const prebuilt = (await this.#listPrebuilt()).filter(
        ({ template_id }) => template_id === this.#choices.template_id,
      );
      if (prebuilt.some(({ latest_build }) => latest_build.status === "running")) return;
      await this.#world.settle();
      await nextTick();
    }
  }

  /** Returns prebuilt workspaces, including those being built. */
  async #listPrebuilt(): Promise<Page["workspaces"]> {
    return (await this.#world.admin.get<Page>("/api/v2/workspaces?q=owner:prebuilds")).workspaces;
  }

  #read(id: string): Promise<Workspace> {
    return this.#world.owner.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
  }

  /** Waits until everything due is done and every build that can end has ended. */
  async #settle(): Promise<void> {
    const { store } = getContext(this.#world.server);
    const { clock, settle } = this.#world;
    for (;;) {
      await settle();
      let isBusy = false;
      for (const id of this.#ids) if (await this.#isBusy(id)) isBusy = true;
      // A build that runs while the clock jumps would look like a build without heartbeats.
      for (const { latest_build } of await this.#listPrebuilt())
        if (latest_build.job.completed_at === undefined) isBusy = true;
      if (!isBusy && (await store.all(listDueTimers({ now: clock.now() }))).length === 0) return;
      await nextTick();
    }
  }

  async #isBusy(id: string): Promise<boolean> {
    const { job, transition, template_version_id } = (await this.#read(id)).latest_build;
    if (job.completed_at !== undefined) return false;
    const isHanging = transition === "start" && template_version_id === this.#choices.versions.hang;
    return !(isHanging && job.status === "running");
  }

  async listViews(): Promise<View[]> {
    return await Promise.all(this.#ids.map((id) => this.#loadView(id)));
  }

  async #loadView(id: string): Promise<View> {
    const workspace = await this.#read(id);
    const builds = await this.#world.owner.get<Build[]>(`/api/v2/workspaces/${id}/builds?limit=1000`);
    const describeBuild = ({ build_number, transition, reason, job }: Build): string =>
      `${build_number} ${transition} ${reason} ${job.status}`;
    return {
      status: workspace.latest_build.status,
      builds: builds.map(describeBuild).reverse(),
      deadline: parseTime(workspace.latest_build.deadline),
      dormant_at: parseTime(workspace.dormant_at),
      deleting_at: parseTime(workspace.deleting_at),
      next_start_at: parseTime(workspace.next_start_at),
      ttl: workspace.ttl_ms ?? null,
      favorite: workspace.favorite,
    };
  }

  /** Deletes the workspaces of this run, so that the clock of the next run does not apply to them. */
  async clear(): Promise<void> {
    for (const id of this.#ids) {
      const { latest_build } = await this.#read(id);
      if (latest_build.status === "deleted") continue;
      if (latest_build.job.completed_at === undefined)
        await this.#sendRequest({ do: "cancel", workspaceIndex: this.#ids.indexOf(id) });
      await this.#settle();
      await this.#world.runBuild(id, "delete");
    }
  }

  /** Starts a server on which runs are started one after the other. */
  static async start() {
    // Hanging builds must not occupy all workers.
    const world = await openClockWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "8" } });
    const choicesByRules = new Map<Rules, Choices>();
    return {
      open: async (rules: Rules) => {
        const choices = choicesByRules.get(rules) ?? (await createTemplate(world.admin, rules));
        choicesByRules.set(rules, choices);
        const real = new ServerLives(world, choices);
        return { now: world.clock.now(), real, done: () => real.clear() };
      },
      [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
    };
  }
}

const awaitStatus = async (call: Promise<unknown>): Promise<number> => {
  try {
    await call;
    return 200;
  } catch (error) {
    if (error instanceof ApiError) return error.status;
    throw error;
  }
};
