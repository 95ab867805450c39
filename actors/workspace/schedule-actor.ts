// The part of the workspace actor that knows time: its messages about time to live, autostart, deadline, use and dormancy, and the one
// timer of a workspace. After each turn that changes what times follow from, the timer and the derived columns go into the same batch,
// so that nothing is forgotten over a restart (rules TI-14 to TI-26).
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import type { Topics } from "#base/topics.ts";
import { listRunningAgents } from "#db/agents/agents.ts";
import type { Store } from "#db/engine/store.ts";
import { clearTimer } from "#db/engine/timers.ts";
import type { BuildRow } from "#db/workspaces/builds.ts";
import { lookAtPrebuilds } from "#db/workspaces/prebuilds.ts";
import { updateWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { Actor, type Outcome } from "../runtime/actor.ts";
import type { Events } from "../runtime/events.ts";
import { type ActivityReport, movesDeadline, recordActivity } from "./activity.ts";
import { type By, note } from "./activity-note.ts";
import type { Uses } from "./activity-uses.ts";
import { auditExtension } from "./audit.ts";
import { nextAutostart, renewedDeadlines } from "./deadline.ts";
import type { Change, Decision, NewBuild, WorkspaceState } from "./decision.ts";
import { dormancyPatch, isDormant, mayRun } from "./dormancy.ts";
import { type Action, derivedTimes, dueAction, scheduleTimer, touchesTimes, transitionOf } from "./schedule.ts";
import { extended, withAutostart, withBuild, withDormancy, withTtl } from "./schedule-edits.ts";
import { isUnclaimed, loadRules, type ScheduleRules } from "./schedule-rules.ts";
import { changed } from "./state.ts";

/** Builds that the server makes by itself (src/domain/builds/automatic.ts). */
export interface AutomaticBuilds {
  /** The build that follows `last`; reads the store only. Throws AppError when it cannot be made, such as for a missing parameter. */
  plan(workspace: WorkspaceRow, last: BuildRow, wish: BuildInput): Promise<NewBuild>;
  /** True when some worker could take a job with these tags. */
  hasWorker(tags: NewBuild["tags"]): boolean;
}

export type BuildInput = Pick<NewBuild, "transition" | "reason" | "initiator_id">;

export type ScheduleDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly uses: Uses;
  readonly automatic: AutomaticBuilds;
};

type Late = "done" | "stale";
type Decide<Reply> = (
  state: WorkspaceState,
) => Outcome<WorkspaceState, Reply> | Promise<Outcome<WorkspaceState, Reply>>;
type Turn = Outcome<WorkspaceState, Late>;

export abstract class ScheduledActor extends Actor<WorkspaceState> {
  readonly #schedule: ScheduleDeps;

  constructor(id: string, parts: ScheduleDeps) {
    super(id, parts.store);
    this.#schedule = parts;
  }

  /** A change as the outcome of a turn, with its announcements. */
  protected abstract outcome<Reply>(change: Change, reply: Reply): Outcome<WorkspaceState, Reply>;

  protected override handle<Reply>(decide: Decide<Reply>): Promise<Reply> {
    return super.handle<Reply>(async (state) => this.#timed(state, await decide(state)));
  }

  protected override handleCreate<Reply>(decide: () => ReturnType<Decide<Reply>>): Promise<Reply> {
    return super.handleCreate<Reply>(async () => this.#timed(undefined, await decide()));
  }

  /** Milliseconds in whole minutes; null: it is not stopped. 400 when the template forbids it. "stale" when nothing changes. */
  setTtl(args: { readonly ttl_ms: number | null; readonly by: By }): Promise<Late> {
    return this.#edit((state, rules, now) => withTtl(state, rules, args, now));
  }

  /** Null: it does not start by itself. 400 when the template forbids it. */
  setAutostart({ schedule }: { readonly schedule: string | null }): Promise<Late> {
    return this.#edit((state, rules, now) => withAutostart(state, rules, schedule, now));
  }

  /** Moves the deadline; milliseconds since 1970. 400 and 409 as in facts/platform 2.7. */
  extend(args: { readonly deadline: number; readonly by: By }): Promise<Late> {
    return this.#edit((state, _, now) => auditExtension(state, extended(state, args, now), now));
  }

  /** Makes it dormant, with a stop when something may run, or wakes it. "stale" when it is so already. 409 for a prebuild. */
  setDormant(args: { readonly dormant: boolean; readonly by: By; readonly initiator_id: string }): Promise<Late> {
    return this.handle<Late>(async (state) => {
      const needsStop = args.dormant && !isDormant(state.workspace) && !state.workspace.deleted && mayRun(state);
      const wish = { transition: "stop", reason: "dormancy", initiator_id: args.initiator_id } as const;
      const stop = needsStop ? await this.#plan(state, wish) : undefined;
      const known = await this.#withAgents(state);
      return this.#settled(state, withDormancy(known, { ...args, stop }, this.#schedule.clock.now()));
    });
  }

  /**
   * Somebody or something works with it. Notes the use, which is written within a minute, and moves the deadline when the rules of
   * facts/platform 2.7 say so. Cheap: most reports write nothing.
   */
  recordActivity(report: ActivityReport): Promise<Late> {
    return this.handle<Late>(async (state) => {
      if (state.workspace.deleted) return { state, reply: "stale" };
      this.#schedule.uses.note(this.id);
      if (!movesDeadline(report) || state.build.deadline === null) return { state, reply: "stale" };
      const rules = await loadRules(this.#schedule.store, state.workspace);
      return this.#settled(state, recordActivity(state, rules, report, this.#schedule.clock.now()));
    });
  }

  /** Writes that it has been used (actors/workspace/activity-uses.ts). */
  noteUse(_: Record<string, never>): Promise<Late> {
    return this.handle<Late>((state) => {
      const now = this.#schedule.clock.now();
      if (state.workspace.deleted || now <= state.workspace.last_used_at) return { state, reply: "stale" };
      return used(state, now);
    });
  }

  /** Timers that a change of the template sets: it counts as used, or as fallen asleep, from now on (facts/platform 2.6). */
  resetTimes({ name }: { readonly name: "reset_used" | "reset_dormant" }): Promise<Late> {
    return super.handle<Late>((state) => {
      const now = this.#schedule.clock.now();
      const { dormant_at, deleted } = state.workspace;
      const done = clearTimer("workspace", this.id, name);
      const patch = name === "reset_used" ? { last_used_at: now } : { dormant_at: now };
      const isMoot = deleted || (name === "reset_dormant" && dormant_at === null);
      const outcome: Turn = isMoot
        ? { state, writes: [done], reply: "stale" }
        : this.outcome(changed(state, { workspace: patch }, [done]), "done");
      return this.#timed(state, outcome, true);
    });
  }

  /** The workspace's timer: does what is due, and sets the timer anew in any case. */
  runSchedule(_: Record<string, never>): Promise<Late> {
    return super.handle<Late>(async (state) => this.#timed(state, await this.#due(state), true));
  }

  async #due(loaded: WorkspaceState): Promise<Turn> {
    const { store, clock, uses } = this.#schedule;
    const now = clock.now();
    // A use that has not been written yet keeps it from falling asleep.
    const fresh = uses.take(this.id) && !loaded.workspace.deleted ? used(loaded, now) : undefined;
    const rules = await loadRules(store, loaded.workspace);
    const renewed = this.#renewed(fresh?.state ?? loaded, rules, now);
    const state = renewed?.state ?? fresh?.state ?? loaded;
    const before: Turn = { state, reply: renewed || fresh ? "done" : "stale", ...both(fresh, renewed) };
    const action = dueAction(state, rules, now);
    if (!action) return before;
    const outcome = await this.#act(await this.#withAgents(state), action, rules, now);
    return { ...outcome, ...both(before, outcome) };
  }

  /** The template may want its stop at another time by now (rule TI-28). */
  #renewed(state: WorkspaceState, rules: ScheduleRules, now: number): Turn | undefined {
    const times = renewedDeadlines(state, rules, now);
    if (!times) return undefined;
    const detail = "Its template's required stop was changed.";
    const isMoved = times.deadline !== state.build.deadline;
    const kept = isMoved ? note(state, now, { reason: "template", detail, new_deadline: times.deadline }) : [];
    return this.outcome<Late>(changed(state, { build: { ...times, updated_at: now } }, kept), "done");
  }

  async #act(state: WorkspaceState, action: Action, rules: ScheduleRules, now: number): Promise<Turn> {
    const kind = transitionOf(action, state);
    const wish = kind && { transition: kind, reason: action.reason, initiator_id: state.workspace.owner_id };
    let build: NewBuild | undefined;
    try {
      build = wish && (await this.#plan(state, wish));
    } catch (error) {
      if (action.kind !== "autostart" || !(error instanceof AppError)) throw error;
      const why = [error.message, ...error.validations.map(({ field, detail }) => `${field}: ${detail}`)].join(" ");
      return this.#skipped(state, rules, why, now);
    }
    if (action.kind === "autostart" && build && !this.#schedule.automatic.hasWorker(build.tags)) {
      return this.#skipped(state, rules, "No worker with the build's tags is connected.", now);
    }
    const { deadline } = state.build;
    const kept = note(state, now, {
      reason: action.kind,
      detail: action.why,
      new_deadline: build ? null : deadline,
    });
    const patch = action.what === "make_dormant" ? dormancyPatch(true, now) : {};
    return this.#settled(state, withBuild(state, patch, build, kept, now));
  }

  /** An autostart that cannot be is left out, not queued (facts/platform 2.7). */
  #skipped(state: WorkspaceState, rules: ScheduleRules, detail: string, now: number): Turn {
    const next_start_at = nextAutostart(state.workspace, rules, now) ?? null;
    const kept = note(state, now, { reason: "autostart_skipped", detail, new_deadline: state.build.deadline });
    return this.outcome(changed(state, { workspace: { next_start_at } }, kept), "done");
  }

  #plan(state: WorkspaceState, wish: BuildInput): Promise<NewBuild> {
    return this.#schedule.automatic.plan(state.workspace, state.build, wish);
  }

  #edit(decide: (state: WorkspaceState, rules: ScheduleRules, now: number) => Decision): Promise<Late> {
    return this.handle<Late>(async (state) => {
      const rules = await loadRules(this.#schedule.store, state.workspace);
      return this.#settled(state, decide(state, rules, this.#schedule.clock.now()));
    });
  }

  #settled(state: WorkspaceState, decision: Decision): Turn {
    if (decision.kind === "refused") throw decision.error;
    if (decision.kind === "stale") return { state, reply: "stale" };
    return this.outcome<Late>(decision, "done");
  }

  /** Agents may have come since the build was made; a new build ends them all. */
  async #withAgents(state: WorkspaceState): Promise<WorkspaceState> {
    return { ...state, agent_ids: await runningAgents(this.#schedule.store, this.id) };
  }

  /** Adds the derived columns and the timer to a turn that changes what they follow from. */
  async #timed<Reply>(
    before: WorkspaceState | undefined,
    outcome: Outcome<WorkspaceState, Reply>,
    always = false,
  ): Promise<Outcome<WorkspaceState, Reply>> {
    const { state } = outcome;
    if (!always && !touchesTimes(before, state)) return outcome;
    const { store, clock, topics } = this.#schedule;
    const rules = await loadRules(store, state.workspace);
    const patch = derivedTimes(before, state, rules, clock.now());
    const isNews = Object.keys(patch).length > 0;
    // Watchers hear of it with the change itself, or now when that told them nothing.
    const unheard = isNews && before?.workspace.version === state.workspace.version;
    const version = state.workspace.version + (unheard ? 1 : 0);
    const workspace = { ...state.workspace, ...patch, version };
    const next = { ...state, workspace };
    return {
      ...outcome,
      state: next,
      writes: [
        ...(outcome.writes ?? []),
        ...(isNews ? [updateWorkspace(this.id, { ...patch, version })] : []),
        scheduleTimer(next, rules),
        // Whoever keeps workspaces ready looks whether there are enough (rule PB-1).
        ...(isKept(before, next) ? [lookAtPrebuilds(workspace.template_id, clock.now())] : []),
      ],
      after: () => {
        outcome.after?.();
        if (unheard) topics.publish("workspace", this.id, { version, latest_build_id: next.build.id });
      },
    };
  }
}

/** The ids of the agents that a build of the workspace ends or replaces. */
export const runningAgents = async (store: Store, workspace_id: string): Promise<string[]> =>
  (await store.all(listRunningAgents({ workspace_id }))).map(({ id }) => id);

/** True while it is nobody's, and for the turn that gives it to somebody. */
const isKept = (before: WorkspaceState | undefined, after: WorkspaceState): boolean =>
  isUnclaimed(after.workspace) || (before !== undefined && isUnclaimed(before.workspace));

/** What two steps of one turn write, and announce once all of it is on disk. */
const both = (first: Turn | undefined, second: Turn | undefined): Pick<Turn, "writes" | "after"> => ({
  writes: [...(first?.writes ?? []), ...(second?.writes ?? [])],
  after: () => {
    first?.after?.();
    second?.after?.();
  },
});

/** A use is no news for watchers: they would hear of it each minute. */
const used = (state: WorkspaceState, now: number): Turn => ({
  state: { ...state, workspace: { ...state.workspace, last_used_at: now } },
  writes: [updateWorkspace(state.workspace.id, { last_used_at: now })],
  reply: "done",
});
