// Keeps workspaces ready for those who will want one: looks at a template when its timer says so, decides (steps.ts) and tells the
// workspace actors, which are the only ones to write. Each look begins from what is on disk, so one that a crash has cut short is simply
// made again (rules PB-1 to PB-6).
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { FIRST_PART, partOf } from "#base/parts.ts";
import type { Store } from "#db/engine/store.ts";
import { findTemplateEvenDeleted, type TemplateRow } from "#db/templates/templates.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import {
  forgetPrebuilds,
  listPrebuilds,
  lookAtPrebuilds,
  lookAtPrebuildsBy,
  type PrebuildRow,
  putOffPrebuilds,
  readPrebuildsPaused,
} from "#db/workspaces/prebuilds.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { jobStatus } from "#schema/workspaces/job.ts";
import { PREBUILDS_USER_ID, resolvePrebuilds } from "#schema/workspaces/prebuilds.ts";
import { presetId } from "#src/provisioners/presets.ts";
import type { Directory } from "../runtime/directory.ts";
import type { WorkspaceActor } from "../workspace/actor.ts";
import type { NewBuild } from "../workspace/decision.ts";
import type { AutomaticBuilds } from "../workspace/effects.ts";
import { GIVE_UP, type Prebuild, stepsFor, type Wanted } from "./steps.ts";

export type KeeperDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly workspaces: () => Directory<WorkspaceActor>;
  readonly automatic: Pick<AutomaticBuilds, "plan">;
  /** The first build of a workspace of the template's active version with this preset. Throws AppError when it cannot be made. */
  readonly firstBuild: (template: TemplateRow, preset_id: string) => Promise<NewBuild>;
};

/** Why a preset has fewer ready than it wants, at the last look. */
export type PrebuildProblem = {
  readonly template_name: string;
  readonly preset_id: string | null;
  readonly preset_name: string;
  readonly reason: string;
};

/** Also without any news, for what nobody has told us of. */
const LOOK_MS = 5 * 60_000;
/** After one that could not be made: the reason, such as a setting or a quota, may be gone by then. */
const RETRY_MS = 30_000;
/** A look that a crash or an error has cut short is made again so soon. */
const CUT_SHORT_MS = 10_000;

export class PrebuildKeeper {
  readonly #deps: KeeperDeps;
  /** By template. Each look finds them again, so they need not outlive the process. */
  readonly #problems = new Map<string, readonly PrebuildProblem[]>();

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  /** What keeps presets from having as many ready as they want. */
  problems(): readonly PrebuildProblem[] {
    return [...this.#problems.values()].flat();
  }

  /** One look at a template; the scheduler makes no two of one template at once. */
  async reconcile(template_id: string): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const again = now + LOOK_MS;
    const cutShort = now + CUT_SHORT_MS;
    // First, so that whatever happens while we look moves it back to then.
    await store.commit([lookAtPrebuilds(template_id, cutShort)], undefined, FIRST_PART);
    const template = await store.get(findTemplateEvenDeleted({ id: template_id }));
    const wanted = template ? await this.#wanted(template, now) : NOTHING;
    const existing = (await store.all(listPrebuilds({ template_id }))).map(toPrebuild);
    const { create, remove, next, given_up } = stepsFor(wanted, existing, now);
    const reasons = new Map<string | null, string>(given_up.map((preset_id) => [preset_id, GIVEN_UP]));
    if (await readPrebuildsPaused(store)) {
      for (const preset_id of create) reasons.set(preset_id, PAUSED);
      this.#keep(template_id, template?.name ?? "", wanted, reasons);
      await store.commit([putOffPrebuilds(template_id, cutShort, again)], undefined, FIRST_PART);
      return;
    }
    const note = (preset_id: string | null, reason: string | undefined): void => {
      if (reason !== undefined) reasons.set(preset_id, reason);
    };
    for (const one of remove) note(one.preset_id, await this.#tried(template_id, () => this.#remove(one)));
    let retry = false;
    for (const preset_id of create) {
      const reason = template && (await this.#tried(template_id, () => this.#create(template, preset_id)));
      note(preset_id, reason);
      retry ||= reason !== undefined;
    }
    this.#keep(template_id, template?.name ?? "", wanted, reasons);
    if (wanted.presets.length === 0 && existing.length === 0 && !wanted.waits) {
      await store.commit([forgetPrebuilds(template_id, cutShort)], undefined, FIRST_PART);
      return;
    }
    const due = Math.min(next ?? again, retry ? now + RETRY_MS : again);
    const sooner = due < again ? [lookAtPrebuildsBy(template_id, due)] : [];
    await store.commit([putOffPrebuilds(template_id, cutShort, again), ...sooner], undefined, FIRST_PART);
  }

  #keep(
    template_id: string,
    template_name: string,
    { presets }: Named,
    reasons: ReadonlyMap<string | null, string>,
  ): void {
    if (reasons.size === 0) {
      this.#problems.delete(template_id);
      return;
    }
    const nameOf = (id: string | null): string => presets.find((one) => one.id === id)?.name ?? "";
    const problems = [...reasons].map(([preset_id, reason]) => ({
      template_name,
      preset_id,
      preset_name: nameOf(preset_id),
      reason,
    }));
    this.#problems.set(template_id, problems);
  }

  /** A deprecated or deleted template and an archived version give no workspaces, so none is kept ready. */
  async #wanted(template: TemplateRow, now: number): Promise<Named & { waits: boolean }> {
    if (template.deleted || template.deprecation_message !== "") return NOTHING;
    const version = await this.#deps.store.get(findTemplateVersion({ id: template.active_version_id }));
    if (!version?.manifest || version.archived) return NOTHING;
    const { presets = [] } = JSON.parse(version.manifest) as Manifest;
    const all = presets.map((preset) => ({
      id: presetId(version.id, preset.name),
      name: preset.name,
      ...resolvePrebuilds(preset, now),
    }));
    return {
      version_id: version.id,
      presets: all.filter(({ instances }) => instances > 0),
      // None are wanted now, but at another hour.
      waits: all.some(({ is_scheduled }) => is_scheduled),
    };
  }

  async #create(template: TemplateRow, preset_id: string): Promise<void> {
    const { clock, workspaces, firstBuild } = this.#deps;
    const build = await firstBuild(template, preset_id);
    const now = clock.now();
    const id = uuid();
    const workspace = {
      id,
      name: `prebuild-${id.slice(0, 8)}`,
      owner_id: PREBUILDS_USER_ID,
      // Who claims it gets it where it is.
      part: partOf(template.id),
      template_id: template.id,
      organization_id: template.organization_id,
      automatic_updates: "never" as const,
      autostart_schedule: null,
      ttl_ms: null,
      favorite: false,
      created_at: now,
      updated_at: now,
      last_used_at: now,
      deleted: false,
      trashed_until: null,
      trashed_bytes: null,
      latest_build_id: build.id,
      status: "pending",
      version: 0,
      dormant_at: null,
      deleting_at: null,
      next_start_at: null,
      user_acl: {},
      group_acl: {},
      task_id: null,
    };
    workspaces().expect(id, workspace.part);
    await workspaces().ask(id, "create", { workspace, build });
  }

  /** Refused by its actor when someone has claimed it in the meantime. */
  async #remove({ workspace_id, build_id }: Prebuild): Promise<void> {
    const { store, workspaces, automatic } = this.#deps;
    const workspace = await store.get(findWorkspace({ id: workspace_id }));
    const last = await store.get(findBuild({ id: build_id }));
    if (!workspace || !last) return;
    const input = { transition: "delete", reason: "initiator", initiator_id: PREBUILDS_USER_ID } as const;
    const build = await automatic.plan(workspace, last, input);
    await workspaces().ask(workspace_id, "createBuild", { build, after: build_id });
  }

  /** Why it cannot be done; that keeps nobody from the others. Undefined when it is done, or someone was there before. */
  async #tried(template_id: string, step: () => Promise<void>): Promise<string | undefined> {
    try {
      await step();
      return undefined;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.kind === "conflict") return undefined;
      const faults = error.validations.map(({ field, detail }) => `${field}: ${detail}`);
      const reason = [error.message, error.detail, ...faults].filter((text) => text !== "").join(" ");
      log("prebuilds").warn("template {template_id} cannot be kept ready: {reason}", { template_id, reason });
      return reason;
    }
  }
}

/** The presets with their names. */
type Named = {
  readonly version_id: string;
  readonly presets: readonly (Wanted["presets"][number] & { readonly name: string })[];
};

const GIVEN_UP = `${GIVE_UP} builds in a row failed. Prebuilding resumes with the template's next active version.`;

const PAUSED = "Prebuilt workspaces are paused.";

const NOTHING = { version_id: "", presets: [], waits: false };

const toPrebuild = (row: PrebuildRow): Prebuild => {
  const { workspace_id, build_id, version_id, preset_id, transition, completed_at } = row;
  return { workspace_id, build_id, version_id, preset_id, transition, status: jobStatus(row), ended_at: completed_at };
};
