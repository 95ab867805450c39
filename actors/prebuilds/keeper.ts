// Keeps prebuilds ready: checks a template when its timer is due, decides (steps.ts) and messages the workspace actors, which do all the
// writing. Each check starts from the stored state, so an interrupted check is repeated (rules PB-1 to PB-6).
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Store } from "#db/engine/store.ts";
import { findTemplateEvenDeleted, type TemplateRow } from "#db/templates/templates.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import {
  clearPrebuildCheck,
  listPrebuilds,
  type PrebuildRow,
  postponePrebuildCheck,
  readPrebuildsPaused,
  schedulePrebuildCheck,
  schedulePrebuildCheckBy,
} from "#db/workspaces/prebuilds.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import { PREBUILDS_USER_ID, resolvePrebuilds } from "#schema/workspaces/prebuilds.ts";
import { toPresetId } from "#src/provisioners/presets.ts";
import type { Directory } from "../runtime/directory.ts";
import type { WorkspaceActor } from "../workspace/actor.ts";
import type { NewBuild } from "../workspace/decision.ts";
import type { AutomaticBuilds } from "../workspace/effects.ts";
import { createWorkspaceRow } from "../workspace/new-row.ts";
import { MAX_FAILURES, type Prebuild, planSteps, type WantedPrebuilds } from "./steps.ts";

export type KeeperDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly workspaces: () => Directory<WorkspaceActor>;
  readonly automatic: Pick<AutomaticBuilds, "plan">;
  /**
   * Returns the first build of a workspace with the template's active version and this preset. Throws AppError when it cannot be created.
   */
  readonly firstBuild: (template: TemplateRow, preset_id: string) => Promise<NewBuild>;
};

/** Why a preset had fewer ready workspaces than requested at the last check. */
export type PrebuildProblem = {
  readonly template_name: string;
  readonly preset_id: string | null;
  readonly preset_name: string;
  readonly reason: string;
};

/** Interval of checks without an event, in case one was missed. */
const CHECK_INTERVAL_MS = 5 * 60_000;
/** Delay after a failed creation: the cause, such as a setting or a quota, may be resolved by then. */
const RETRY_MS = 30_000;
/** An interrupted or failed check is repeated after this time. */
const INTERRUPTED_RETRY_MS = 10_000;

export class PrebuildKeeper {
  readonly #deps: KeeperDeps;
  /** The problems by template. Each check determines them, so they are kept in memory only. */
  readonly #problems = new Map<string, readonly PrebuildProblem[]>();

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
  }

  /** Returns why presets have fewer ready workspaces than requested. */
  problems(): readonly PrebuildProblem[] {
    return [...this.#problems.values()].flat();
  }

  /** Checks a template once. The scheduler never runs two checks of one template concurrently. */
  async reconcile(template_id: string): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const nextCheckAt = now + CHECK_INTERVAL_MS;
    const retryAt = now + INTERRUPTED_RETRY_MS;
    // Stored before the check, so that an event during the check can move the timer forward again.
    await store.commit([schedulePrebuildCheck(template_id, retryAt)], { of: "deployment" });
    const template = await store.get(findTemplateEvenDeleted({ id: template_id }));
    const wanted = template ? await this.#loadWanted(template, now) : NO_PRESETS;
    const existing = (await store.all(listPrebuilds({ template_id }))).map(toPrebuild);
    const { create, remove, next, given_up } = planSteps(wanted, existing, now);
    const reasons = new Map<string | null, string>(given_up.map((preset_id) => [preset_id, ABANDONED]));
    if (await readPrebuildsPaused(store)) {
      for (const preset_id of create) reasons.set(preset_id, PAUSED);
      this.#setProblems(template_id, template?.name ?? "", wanted, reasons);
      await store.commit([postponePrebuildCheck(template_id, retryAt, nextCheckAt)], { of: "deployment" });
      return;
    }
    const setReason = (preset_id: string | null, reason: string | undefined): void => {
      if (reason !== undefined) reasons.set(preset_id, reason);
    };
    for (const one of remove) setReason(one.preset_id, await this.#tryStep(template_id, () => this.#remove(one)));
    let hasFailed = false;
    for (const preset_id of create) {
      const reason = template && (await this.#tryStep(template_id, () => this.#create(template, preset_id)));
      setReason(preset_id, reason);
      hasFailed ||= reason !== undefined;
    }
    this.#setProblems(template_id, template?.name ?? "", wanted, reasons);
    if (wanted.presets.length === 0 && existing.length === 0 && !wanted.waits) {
      await store.commit([clearPrebuildCheck(template_id, retryAt)], { of: "deployment" });
      return;
    }
    const due = Math.min(next ?? nextCheckAt, hasFailed ? now + RETRY_MS : nextCheckAt);
    const sooner = due < nextCheckAt ? [schedulePrebuildCheckBy(template_id, due)] : [];
    await store.commit([postponePrebuildCheck(template_id, retryAt, nextCheckAt), ...sooner], { of: "deployment" });
  }

  #setProblems(
    template_id: string,
    template_name: string,
    { presets }: NamedPresets,
    reasons: ReadonlyMap<string | null, string>,
  ): void {
    if (reasons.size === 0) {
      this.#problems.delete(template_id);
      return;
    }
    const toPresetName = (id: string | null): string => presets.find((one) => one.id === id)?.name ?? "";
    const problems = [...reasons].map(([preset_id, reason]) => ({
      template_name,
      preset_id,
      preset_name: toPresetName(preset_id),
      reason,
    }));
    this.#problems.set(template_id, problems);
  }

  /** Returns the presets with prebuilds. A deprecated or deleted template, or an archived version, has none. */
  async #loadWanted(template: TemplateRow, now: number): Promise<NamedPresets & { waits: boolean }> {
    if (template.deleted || template.deprecation_message !== "") return NO_PRESETS;
    const version = await this.#deps.store.get(findTemplateVersion({ id: template.active_version_id }));
    if (!version?.manifest || version.archived) return NO_PRESETS;
    const { presets = [] } = JSON.parse(version.manifest) as Manifest;
    const all = presets.map((preset) => ({
      id: toPresetId(version.id, preset.name),
      name: preset.name,
      ...resolvePrebuilds(preset, now),
    }));
    return {
      version_id: version.id,
      presets: all.filter(({ instances }) => instances > 0),
      // True if a schedule needs prebuilds at another hour.
      waits: all.some(({ is_scheduled }) => is_scheduled),
    };
  }

  async #create(template: TemplateRow, preset_id: string): Promise<void> {
    const { clock, workspaces, firstBuild } = this.#deps;
    const build = await firstBuild(template, preset_id);
    const id = uuid();
    const settings = {
      name: `prebuild-${id.slice(0, 8)}`,
      owner_id: PREBUILDS_USER_ID,
      template_id: template.id,
      organization_id: template.organization_id,
      automatic_updates: "never" as const,
      autostart_schedule: null,
      autostart_no_user_data: false,
      ttl_ms: null,
      task_id: null,
    };
    // A claim changes the workspace's owner, but not its shard.
    const initial = { id, latest_build_id: build.id, now: clock.now() };
    const workspace = createWorkspaceRow(settings, initial, template.id);
    workspaces().expect(id, workspace.part);
    await workspaces().ask(id, "create", { workspace, build });
  }

  /** Deletes a prebuild. Its actor rejects this if the prebuild was claimed in the meantime. */
  async #remove({ workspace_id, build_id }: Prebuild): Promise<void> {
    const { store, workspaces, automatic } = this.#deps;
    const workspace = await store.get(findWorkspace({ id: workspace_id }));
    const last = await store.get(findBuild({ id: build_id }));
    if (!workspace || !last) return;
    const input = { transition: "delete", reason: "initiator", initiator_id: PREBUILDS_USER_ID } as const;
    const build = await automatic.plan(workspace, last, input);
    await workspaces().ask(workspace_id, "createBuild", { build, after: build_id });
  }

  /** Returns why the step failed, without blocking the others. Returns undefined when it succeeded or became unnecessary. */
  async #tryStep(template_id: string, step: () => Promise<void>): Promise<string | undefined> {
    try {
      await step();
      return undefined;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.kind === "conflict") return undefined;
      const problems = error.validations.map(({ field, detail }) => `${field}: ${detail}`);
      const reason = [error.message, error.detail, ...problems].filter((text) => text !== "").join(" ");
      log("prebuilds").warn("template {template_id} cannot be kept ready: {reason}", { template_id, reason });
      return reason;
    }
  }
}

/** Presets with their names. */
type NamedPresets = {
  readonly version_id: string;
  readonly presets: readonly (WantedPrebuilds["presets"][number] & { readonly name: string })[];
};

const ABANDONED = `${MAX_FAILURES} builds in a row failed. Prebuilding resumes with the template's next active version.`;

const PAUSED = "Prebuilt workspaces are paused.";

const NO_PRESETS = { version_id: "", presets: [], waits: false };

const toPrebuild = (row: PrebuildRow): Prebuild => {
  const { workspace_id, build_id, version_id, preset_id, transition, completed_at } = row;
  return {
    workspace_id,
    build_id,
    version_id,
    preset_id,
    transition,
    status: toJobStatus(row),
    ended_at: completed_at,
  };
};
