// Makes the workspace actor's decisions about time: time to live, autostart, deadline, usage, dormancy, and the workspace's timer. A change
// that affects the times updates the timer and the derived columns in the same batch, so that no action is lost in a restart (rules TI-14
// to TI-26).
import { AppError } from "#base/errors.ts";
import { listRunningAgents } from "#db/agents/agents.ts";
import { countWorkingChats } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import { clearTimer, findActorTimer, moveTimer } from "#db/engine/timers.ts";
import { schedulePrebuildCheck } from "#db/workspaces/prebuilds.ts";
import { updateWorkspace } from "#db/workspaces/workspaces.ts";
import type { Outcome } from "../runtime/actor.ts";
import { type ActivityReport, movesDeadline, recordActivity } from "./activity.ts";
import { insertNote, type Originator } from "./activity-note.ts";
import { bumpDeadline, findNextAutostart, renewDeadlines } from "./deadline.ts";
import type { Decision, NewBuild, WorkspaceState } from "./decision.ts";
import type { WorkspaceDeps } from "./deps.ts";
import { isDormant, mayBeRunning, toDormancyPatch } from "./dormancy.ts";
import type { BuildInput } from "./effects.ts";
import { type LateResult, toOutcome, toSettledOutcome } from "./outcome.ts";
import { type Action, deriveTimes, findDueAction, nextCheckTime, toTransition, touchesTimes } from "./schedule.ts";
import { withBuild, withDormancy } from "./schedule-edits.ts";
import { isUnclaimed, loadRules, type ScheduleRules } from "./schedule-rules.ts";
import { toVisibleChange } from "./state.ts";

export type SetDormant = { readonly dormant: boolean; readonly by: Originator; readonly initiator_id: string };
type MessageOutcome = Outcome<WorkspaceState, LateResult>;

/** Each method returns the outcome of one message. */
export class TimedDecisions {
  readonly #deps: WorkspaceDeps;

  constructor(deps: WorkspaceDeps) {
    this.#deps = deps;
  }

  /** Changes time to live, autostart or deadline within the rules of the template. */
  async edit(
    state: WorkspaceState,
    decide: (state: WorkspaceState, rules: ScheduleRules, now: number) => Decision,
  ): Promise<MessageOutcome> {
    const rules = await loadRules(this.#deps.store, state.workspace);
    return this.#settle(state, decide(state, rules, this.#deps.clock.now()));
  }

  async setDormant(state: WorkspaceState, args: SetDormant): Promise<MessageOutcome> {
    const needsStop = args.dormant && !isDormant(state.workspace) && !state.workspace.deleted && mayBeRunning(state);
    const input = { transition: "stop", reason: "dormancy", initiator_id: args.initiator_id } as const;
    const stop = needsStop ? await this.#plan(state, input) : undefined;
    const withAgents = await this.#withAgents(state);
    return this.#settle(state, withDormancy(withAgents, { ...args, stop }, this.#deps.clock.now()));
  }

  /** Records the use, which is written within a minute, and moves the deadline as facts/platform 2.7 requires. */
  async recordActivity(state: WorkspaceState, report: ActivityReport): Promise<MessageOutcome> {
    if (state.workspace.deleted) return { state, reply: "stale" };
    this.#deps.uses.note(state.workspace.id);
    if (!movesDeadline(report) || state.build.deadline === null) return { state, reply: "stale" };
    const rules = await loadRules(this.#deps.store, state.workspace);
    return this.#settle(state, recordActivity(state, rules, report, this.#deps.clock.now()));
  }

  noteUse(state: WorkspaceState): MessageOutcome {
    const now = this.#deps.clock.now();
    if (state.workspace.deleted || now <= state.workspace.last_used_at) return { state, reply: "stale" };
    return markUsed(state, now);
  }

  /** Sets the time of last use, or of becoming dormant, to now (facts/platform 2.6). */
  resetTimes(state: WorkspaceState, name: "reset_used" | "reset_dormant"): MessageOutcome {
    const now = this.#deps.clock.now();
    const { id, dormant_at, deleted } = state.workspace;
    const done = clearTimer("workspace", id, name);
    const patch = name === "reset_used" ? { last_used_at: now } : { dormant_at: now };
    const isObsolete = deleted || (name === "reset_dormant" && dormant_at === null);
    return isObsolete
      ? { state, writes: [done], reply: "stale" }
      : toOutcome(this.#deps, toVisibleChange(state, { workspace: patch }, [done]), "done");
  }

  /** Performs the action that is due. */
  async runDue(loaded: WorkspaceState): Promise<MessageOutcome> {
    const { store, clock, uses } = this.#deps;
    const now = clock.now();
    // A use that is not written yet must also prevent dormancy.
    const used = uses.takeUsed(loaded.workspace.id) && !loaded.workspace.deleted ? markUsed(loaded, now) : undefined;
    const rules = await loadRules(store, loaded.workspace);
    const renewed = this.#renewDeadlines(used?.state ?? loaded, rules, now);
    const state = renewed?.state ?? used?.state ?? loaded;
    const before: MessageOutcome = { state, reply: renewed || used ? "done" : "stale", ...combineSteps(used, renewed) };
    const action = findDueAction(state, rules, now);
    if (!action) return before;
    const extension = action.kind === "autostop" ? await this.#extendForChats(state, rules, now) : undefined;
    if (extension) return { ...extension, ...combineSteps(before, extension) };
    const outcome = await this.#runAction(await this.#withAgents(state), action, rules, now);
    return { ...outcome, ...combineSteps(before, outcome) };
  }

  /** Moves the stop if the template or the owner's quiet hours have changed (rules TI-28, TI-31). */
  #renewDeadlines(state: WorkspaceState, rules: ScheduleRules, now: number): MessageOutcome | undefined {
    const deadlines = renewDeadlines(state, rules, now);
    if (!deadlines) return undefined;
    const detail = "The time of the required stop has changed.";
    const isMoved = deadlines.deadline !== state.build.deadline;
    const entry = isMoved
      ? insertNote(state, now, { reason: "template", detail, new_deadline: deadlines.deadline })
      : [];
    return toOutcome<LateResult>(
      this.#deps,
      toVisibleChange(state, { build: { ...deadlines, updated_at: now } }, entry),
      "done",
    );
  }

  /** Extends the deadline if a chat is working in the workspace, as activity does (rule TI-32). */
  async #extendForChats(state: WorkspaceState, rules: ScheduleRules, now: number): Promise<MessageOutcome | undefined> {
    const deadline = bumpDeadline(state, rules, now);
    if (deadline === undefined) return undefined;
    const { count = 0 } = (await this.#deps.store.get(countWorkingChats({ workspace_id: state.workspace.id }))) ?? {};
    if (count === 0) return undefined;
    const entry = insertNote(state, now, { reason: "activity", detail: "A chat is working.", new_deadline: deadline });
    return toOutcome<LateResult>(
      this.#deps,
      toVisibleChange(state, { build: { deadline, updated_at: now } }, entry),
      "done",
    );
  }

  async #runAction(state: WorkspaceState, action: Action, rules: ScheduleRules, now: number): Promise<MessageOutcome> {
    const kind = toTransition(action, state);
    const input = kind && { transition: kind, reason: action.reason, initiator_id: state.workspace.owner_id };
    let build: NewBuild | undefined;
    try {
      build = input && (await this.#plan(state, input));
    } catch (error) {
      if (action.kind !== "autostart" || !(error instanceof AppError)) throw error;
      const fields = error.validations.map(({ field, detail }) => `${field}: ${detail}`);
      const detail = [error.message, error.detail, ...fields].filter((part) => part !== "").join(" ");
      return this.#skipAutostart(state, rules, detail, now);
    }
    if (action.kind === "autostart" && build && !this.#deps.automatic.hasWorker(build.tags)) {
      return this.#skipAutostart(state, rules, "No worker with the build's tags is connected.", now);
    }
    const new_deadline = build ? null : state.build.deadline;
    const entry = insertNote(state, now, { reason: action.kind, detail: action.detail, new_deadline });
    const patch = action.operation === "make_dormant" ? toDormancyPatch(true, now) : {};
    return this.#settle(state, withBuild(state, patch, build, entry, now));
  }

  /** Skips an autostart that is not possible, instead of queueing its build (facts/platform 2.7). */
  #skipAutostart(state: WorkspaceState, rules: ScheduleRules, detail: string, now: number): MessageOutcome {
    const next_start_at = findNextAutostart(state.workspace, rules, now) ?? null;
    const entry = insertNote(state, now, { reason: "autostart_skipped", detail, new_deadline: state.build.deadline });
    return toOutcome(this.#deps, toVisibleChange(state, { workspace: { next_start_at } }, entry), "done");
  }

  #plan(state: WorkspaceState, input: BuildInput): Promise<NewBuild> {
    return this.#deps.automatic.plan(state.workspace, state.build, input);
  }

  #settle(state: WorkspaceState, decision: Decision): MessageOutcome {
    return toSettledOutcome<LateResult>(this.#deps, state, decision, "done", "stale");
  }

  /** Adds the current agents to the state, because a new build ends all of them, including sub-agents created since the last build. */
  async #withAgents(state: WorkspaceState): Promise<WorkspaceState> {
    return { ...state, agent_ids: await listRunningAgentIds(this.#deps.store, state.workspace.id) };
  }

  /** Adds the derived columns and the timer to the outcome of a message that affects them, or of any message with `always`. */
  async withTimers<Reply>(
    before: WorkspaceState | undefined,
    outcome: Outcome<WorkspaceState, Reply>,
    always = false,
  ): Promise<Outcome<WorkspaceState, Reply>> {
    const { state } = outcome;
    if (!always && !touchesTimes(before, state)) return outcome;
    const { store, clock, topics } = this.#deps;
    const { id } = state.workspace;
    // The timer is read before the rules, because a change of the rules also sets the timer.
    const dueAt = (await store.get(findActorTimer("workspace", id, "schedule")))?.due;
    const rules = await loadRules(store, state.workspace);
    const patch = deriveTimes(before, state, rules, clock.now());
    const hasChanges = Object.keys(patch).length > 0;
    // Watchers are notified with the change itself, or here if it was not visible.
    const needsEvent = hasChanges && before?.workspace.version === state.workspace.version;
    const version = state.workspace.version + (needsEvent ? 1 : 0);
    const workspace = { ...state.workspace, ...patch, version };
    const next = { ...state, workspace };
    return {
      ...outcome,
      state: next,
      writes: [
        ...(outcome.writes ?? []),
        ...(hasChanges ? [updateWorkspace(workspace.id, { ...patch, version })] : []),
        moveTimer("workspace", id, "schedule", { due: nextCheckTime(next, rules), seen: dueAt }),
        // The keeper of prebuilds checks whether there are enough (rule PB-1).
        ...(isPrebuild(before, next) ? [schedulePrebuildCheck(workspace.template_id, clock.now())] : []),
      ],
      after: () => {
        outcome.after?.();
        if (needsEvent) topics.publish("workspace", workspace.id, { version, latest_build_id: next.build.id });
      },
    };
  }
}

/** Returns the IDs of the agents that a new build of the workspace would end. */
export const listRunningAgentIds = async (store: Store, workspace_id: string): Promise<string[]> =>
  (await store.all(listRunningAgents({ workspace_id }))).map(({ id }) => id);

/** Returns true if the workspace is an unclaimed prebuild, or was one before this message. */
const isPrebuild = (before: WorkspaceState | undefined, after: WorkspaceState): boolean =>
  isUnclaimed(after.workspace) || (before !== undefined && isUnclaimed(before.workspace));

/** Combines the writes and announcements of two steps of one message. */
const combineSteps = (
  first: MessageOutcome | undefined,
  second: MessageOutcome | undefined,
): Pick<MessageOutcome, "writes" | "after"> => ({
  writes: [...(first?.writes ?? []), ...(second?.writes ?? [])],
  after: () => {
    first?.after?.();
    second?.after?.();
  },
});

/** Updates the time of last use. Does not notify watchers, because that would happen every minute. */
const markUsed = (state: WorkspaceState, now: number): MessageOutcome => ({
  state: { ...state, workspace: { ...state.workspace, last_used_at: now } },
  writes: [updateWorkspace(state.workspace.id, { last_used_at: now })],
  reply: "done",
});
