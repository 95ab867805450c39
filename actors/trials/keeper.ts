// Runs each trial to its end: sends every way its prompt when its fork is usable, follows its chat, determines its changes, runs its
// check, and keeps or deletes the way as its owner decides. The remaining work is a timer row, every ID is chosen in advance, and each
// observation becomes one guarded write. So steps are repeated after a crash, but nothing is created twice (rules TY-1 to TY-9).
import { AppError } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { clearTimer, setTimer, type Timer } from "#db/engine/timers.ts";
import { ALL_ROWS, type IsLeaving, type OwnRows } from "#db/own-rows.ts";
import {
  deleteTrials,
  findTrial,
  listOpenTrials,
  type StoredWay,
  saveTrial,
  type TrialRow,
  upsertTrialDiff,
} from "#db/trials/trials.ts";
import { findFork } from "#db/workspaces/forks.ts";
import type { TrialDiff } from "#schema/chats/trial.ts";
import { INTERRUPTED_REASON } from "#src/tools/tool.ts";
import type { Events } from "../runtime/events.ts";
import { runOutsideMailbox } from "../runtime/mailbox.ts";
import { CheckQueue } from "../runtime/serialized-checks.ts";
import type { Service } from "../runtime/service.ts";
import { type EndingDeps, endWay } from "./ending.ts";
import { checkKeep, type KeepingDeps } from "./keep-way.ts";
import { checkRunningWay, type RunningDeps } from "./running.ts";
import {
  type CheckResult,
  countOpen,
  isActiveWay,
  isEnding,
  isOver,
  type TrialEvent,
  transition,
  type WayChanges,
} from "./state.ts";

/** The kind and name of the keeper's timers. */
export const TRIAL = "trial";
export const TRIAL_CHECK_TIMER = "look";

/** Interval of checks without an event, in case one was missed; longer for a trial that waits for its owner. */
const CHECK_INTERVAL_MS = 30_000;
const READY_CHECK_INTERVAL_MS = 10 * 60_000;
/** How often a conflicting write is retried. */
const MAX_TRIES = 20;

export type TrialKeeperDeps = RunningDeps &
  KeepingDeps &
  EndingDeps & {
    readonly topics: Topics<Events>;
    /** Determines the changes of the way. Resolves even if that is not possible. */
    readonly measure: (
      trial: TrialRow,
      way: StoredWay,
      signal: AbortSignal,
    ) => Promise<WayChanges & { readonly folders: TrialDiff["folders"] }>;
    /**
     * Runs the check of the way's last turn once, and resumes it after a crash. Also resolves if it cannot run. Stops the check if the signal fires
     * with `INTERRUPTED`, and otherwise leaves it running.
     */
    readonly check: (trial: TrialRow, way: StoredWay, signal: AbortSignal) => Promise<CheckResult>;
  };

export class TrialKeeper implements Service {
  readonly timers = { [TRIAL]: ({ actor_id }: Timer) => this.onTimer(actor_id) };
  readonly #deps: TrialKeeperDeps;
  /** The workspaces and chats whose events concern a trial, by trial. */
  readonly #waiting = new Map<string, ReadonlySet<string>>();
  /** Running examinations by trial, way and turn. */
  readonly #examinations = new Map<
    string,
    { readonly trial_id: string; readonly end: AbortController; done: Promise<void> }
  >();
  /** When the pending timers are due. */
  readonly #timers = new Map<string, number>();
  #isStopped = false;
  readonly #checks = new CheckQueue(
    (id) => this.#checkOnce(id),
    (trial_id, error) => {
      log("trials").error("cannot check trial {trial_id}: {error}", { trial_id, error });
      return "later";
    },
  );

  constructor(deps: TrialKeeperDeps) {
    this.#deps = deps;
    const onEvent = (id: string): void => {
      for (const [trial_id, ids] of this.#waiting) {
        if (ids.has(id)) runOutsideMailbox(() => void this.#checks.check(trial_id));
      }
    };
    deps.topics.subscribeAll("workspace", onEvent);
    deps.topics.subscribeAll("workspace_changed", onEvent);
    deps.topics.subscribeAll("owner_chats", (_, { kind, chat_id }) => {
      if (kind !== "trial_change") onEvent(chat_id);
    });
    // A chat was deleted.
    deps.topics.subscribeAll("access_changed", onEvent);
    deps.topics.subscribeAll("missed", () => {
      for (const trial_id of this.#waiting.keys()) runOutsideMailbox(() => void this.#checks.check(trial_id));
    });
  }

  /** Continues a trial whenever one of its workspaces or chats changes. */
  wait(trial_id: string): void {
    void this.#checks.check(trial_id);
  }

  /** Continues the open trials: all of them after a start, or those of shards that came from another server. */
  async recover(own = ALL_ROWS): Promise<void> {
    for (const { id } of await this.#deps.store.all(listOpenTrials({}, own))) this.wait(id);
  }

  /** Stops working on trials, except on those in `kept`. Resolves when nothing is running. */
  async release(_isLeaving: IsLeaving, kept: OwnRows): Promise<void> {
    for (const id of this.#waiting.keys()) this.#untrack(id);
    await this.#endExaminations(() => true, STOPPING_REASON);
    await this.#checks.whenSettled();
    await this.recover(kept);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#endExaminations(() => true, STOPPING_REASON);
    await this.#checks.stop();
  }

  /** Handles a due timer of a trial. */
  onTimer(id: string): Promise<void> {
    return this.#checks.check(id);
  }

  /**
   * Decides on an event and commits it with the given statements. Returns "stale" if it comes too late. Rejects with 400 or 409 for invalid
   * requests.
   */
  async applyEvent(id: string, event: TrialEvent, writes: readonly Statement[] = []): Promise<"done" | "stale"> {
    const { store, clock, topics } = this.#deps;
    for (let tries = 1; ; tries++) {
      const found = await store.get(findTrial({ id }));
      if (!found) return "stale";
      const decision = transition(found.trial, event);
      if (decision.kind === "refused") throw decision.error;
      if (decision.kind === "stale") return "stale";
      const { state } = decision;
      const next: TrialRow = { ...found.trial, ...state, open_ways: countOpen(state), updated_at: clock.now() };
      try {
        await store.commit([saveTrial(next), ...writes], { of: found.part });
      } catch (error) {
        // Another event was stored first, so this one is decided again on the new state.
        if (error instanceof CommitError && error.reason === "stale" && tries < MAX_TRIES) continue;
        throw error;
      }
      topics.publish("owner_chats", next.owner_id, { kind: "trial_change", chat_id: next.chat_id });
      this.wait(id);
      return "done";
    }
  }

  #untrack(id: string): void {
    this.#waiting.delete(id);
    this.#timers.delete(id);
  }

  async #checkOnce(id: string): Promise<void> {
    const { store } = this.#deps;
    const { trial, part } = (await store.get(findTrial({ id }))) ?? {};
    if (!trial || isOver(trial)) return this.#end(id, trial, part);
    const { ways, chat_id, workspace_id, keep } = trial;
    const ids = ways.flatMap((way) => [way.workspace_id, way.chat_id]);
    this.#waiting.set(id, new Set([chat_id, workspace_id, ...ids]));
    await this.#setTimer(trial, part);
    this.#endUnneeded(trial);
    const isWaiting = trial.status === "running" || trial.status === "ready";
    // The owner was deleted or suspended.
    if (isWaiting && !(await store.get(findChatAccessRow({ id: chat_id })))) {
      await this.applyEvent(id, { type: "discard", now: this.#deps.clock.now() });
      return;
    }
    if (keep && !keep.restored) {
      const event = await checkKeep(this.#deps, trial, keep);
      if (event) await this.applyEvent(id, event);
      if (event) return;
    }
    await Promise.all(ways.map((way) => this.#checkWay(trial, way)));
  }

  async #checkWay(trial: TrialRow, way: StoredWay): Promise<void> {
    if (way.gone) return;
    const fork = await this.#deps.store.get(findFork({ id: trial.fork_id }));
    const checkWay = isEnding(trial) ? endWay : checkRunningWay;
    const event = await checkWay(this.#deps, { trial, fork }, way);
    const decided = event && (await this.applyEvent(trial.id, event));
    if (decided !== "done" && shouldExamine(trial, way) && event?.type === "seen" && event.chat === "idle")
      this.#examine(trial, way);
  }

  #examine(trial: TrialRow, way: StoredWay): void {
    const key = toKey(trial, way);
    if (this.#isStopped || this.#examinations.has(key)) return;
    const end = new AbortController();
    const examine = (): Promise<unknown> =>
      way.measured ? this.#check(trial, way, end.signal) : this.#measure(trial, way, end.signal);
    const done = examine()
      .catch((error) => {
        if (!end.signal.aborted) log("trials").error("cannot examine way {key}: {error}", { key, error });
      })
      .finally(() => this.#examinations.delete(key));
    this.#examinations.set(key, { trial_id: trial.id, end, done: done.then(() => {}) });
  }

  async #measure(trial: TrialRow, way: StoredWay, signal: AbortSignal): Promise<void> {
    const { number, turn } = way;
    const { folders, ...found } = await this.#deps.measure(trial, way, signal);
    if (signal.aborted) return;
    const diff = upsertTrialDiff({ trial_id: trial.id, number, folders: [...folders] });
    await this.applyEvent(trial.id, { type: "measured", number, turn, ...found }, [diff]);
  }

  async #check(trial: TrialRow, way: StoredWay, signal: AbortSignal): Promise<void> {
    const { number, turn } = way;
    const checking = this.#deps.check(trial, way, signal);
    failpoint("trial_checking");
    const found = await checking;
    if (signal.aborted) return;
    failpoint("trial_checked");
    await this.applyEvent(trial.id, { type: "checked", number, turn, ...found });
  }

  /** Stops the examinations that are no longer needed: of stopped ways, ways with a newer turn, and ways to be deleted. */
  #endUnneeded(trial: TrialRow): void {
    const wanted = new Set(trial.ways.filter((way) => shouldExamine(trial, way)).map((way) => toKey(trial, way)));
    void this.#endExaminations((key, trial_id) => trial_id === trial.id && !wanted.has(key), INTERRUPTED_REASON);
  }

  async #endExaminations(shouldEnd: (key: string, trial_id: string) => boolean, reason: Error): Promise<void> {
    const ending = [...this.#examinations].filter(([key, { trial_id }]) => shouldEnd(key, trial_id));
    for (const [, { end }] of ending) end.abort(reason);
    await Promise.all(ending.map(([, { done }]) => done));
  }

  /** Ensures that a timer is pending, which repeats the next step if a crash interrupts it. */
  async #setTimer({ id, status }: TrialRow, part: number | undefined): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const due = now + (status === "ready" ? READY_CHECK_INTERVAL_MS : CHECK_INTERVAL_MS);
    const pendingDue = this.#timers.get(id) ?? 0;
    if (pendingDue > now && pendingDue <= due) return;
    await store.commit([setTimer(TRIAL, id, TRIAL_CHECK_TIMER, due)], { of: part });
    this.#timers.set(id, due);
  }

  async #end(id: string, trial: TrialRow | undefined, part: number | undefined): Promise<void> {
    const { store } = this.#deps;
    this.#untrack(id);
    const isChatDeleted = trial && !(await store.get(findChatAccessRow({ id: trial.chat_id })));
    const deletions = isChatDeleted ? deleteTrials(trial.chat_id) : [];
    await store.commit([clearTimer(TRIAL, id, TRIAL_CHECK_TIMER), ...deletions], { of: part });
  }
}

/** The reason when the server is stopping or another node continues the trials. */
const STOPPING_REASON = new AppError("overloaded", "The server is stopping.");

const toKey = ({ id }: TrialRow, { number, turn, measured }: StoredWay): string =>
  `${id} ${number} ${turn} ${measured ? "check" : "changes"}`;

/** Returns whether the turn has ended and its changes have not been determined since, or its check has not run. */
const shouldExamine = (trial: TrialRow, way: StoredWay): boolean => {
  if (isEnding(trial) || way.gone || way.interrupts || way.message_id === null) return false;
  return way.status === "checking" || (!way.measured && !isActiveWay(way));
};
