// Creates the workspaces of forks, each exactly once: when the fork's snapshot is ready, creates each workspace with a build that restores it, and
// copies the chats. A timer row represents the remaining work, and all IDs are chosen in advance, so a crash repeats steps but creates nothing twice
// (rules FO-1 to FO-6).

import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import { trimEnd } from "#base/text/trim.ts";
import type { Topics } from "#base/topics.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { clearTimer, setTimer, type Timer } from "#db/engine/timers.ts";
import { ALL_ROWS, type IsLeaving, type OwnRows } from "#db/own-rows.ts";
import type { PlannedCopy } from "#db/schema/forks.ts";
import { type ForkRow, findFork, listBuildsOfFork, listOpenForks, updateFork } from "#db/workspaces/forks.ts";
import { findSnapshot } from "#db/workspaces/snapshots.ts";
import { findWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import type { ChatActor } from "../chat/actor.ts";
import type { Directory } from "../runtime/directory.ts";
import type { Events } from "../runtime/events.ts";
import { runOutsideMailbox } from "../runtime/mailbox.ts";
import { CheckQueue } from "../runtime/serialized-checks.ts";
import type { Service } from "../runtime/service.ts";
import type { WorkspaceActor } from "../workspace/actor.ts";
import { createWorkspaceRow } from "../workspace/new-row.ts";

/** The kind and name of the keeper's timers. */
export const FORK = "fork";
export const CONTINUE_TIMER = "go_on";

/** Interval of checks without an event, in case one was missed. */
const CHECK_INTERVAL_MS = 30_000;

export type ForkKeeperDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly chats: Directory<ChatActor>;
};

export class ForkKeeper implements Service {
  readonly timers = { [FORK]: ({ actor_id }: Timer) => this.onTimer(actor_id) };
  readonly #deps: ForkKeeperDeps;
  /** The workspaces whose events concern a fork, by fork. */
  readonly #waiting = new Map<string, ReadonlySet<string>>();
  /** Forks whose workspaces and chats exist and that only wait for their files. */
  readonly #created = new Set<string>();
  /** When the pending timer of each fork is due. */
  readonly #timers = new Map<string, number>();
  readonly #checks = new CheckQueue(
    (id) => this.#checkOnce(id),
    (fork_id, error) => {
      log("forks").error("cannot check fork {fork_id}: {error}", { fork_id, error });
      return "later";
    },
  );

  constructor(deps: ForkKeeperDeps) {
    this.#deps = deps;
    const onWorkspaceEvent = (workspace_id: string): void => {
      for (const [fork_id, ids] of this.#waiting) {
        if (ids.has(workspace_id)) runOutsideMailbox(() => void this.#checks.check(fork_id));
      }
    };
    deps.topics.subscribeAll("workspace", onWorkspaceEvent);
    deps.topics.subscribeAll("workspace_changed", onWorkspaceEvent);
    deps.topics.subscribeAll("missed", () => {
      for (const fork_id of this.#waiting.keys()) runOutsideMailbox(() => void this.#checks.check(fork_id));
    });
  }

  /** Continues a fork whenever one of its workspaces changes. */
  wait(fork_id: string): void {
    void this.#checks.check(fork_id);
  }

  /** Continues the open forks: all of them after a start, or those of shards that came from another server. */
  async recover(own = ALL_ROWS): Promise<void> {
    for (const { id } of await this.#deps.store.all(listOpenForks({}, own))) this.wait(id);
  }

  /** Stops working on forks, except on those in `kept`. Resolves when no step is running. */
  async release(_isLeaving: IsLeaving, kept: OwnRows): Promise<void> {
    for (const id of this.#waiting.keys()) this.#untrack(id);
    await this.#checks.whenSettled();
    await this.recover(kept);
  }

  stop(): Promise<void> {
    return this.#checks.stop();
  }

  /** Handles a due timer of a fork. */
  onTimer(id: string): Promise<void> {
    return this.#checks.check(id);
  }

  #untrack(id: string): void {
    this.#waiting.delete(id);
    this.#created.delete(id);
    this.#timers.delete(id);
  }

  async #checkOnce(id: string): Promise<void> {
    const { store } = this.#deps;
    const fork = await store.get(findFork({ id }));
    const source = fork && (await store.get(findWorkspace({ id: fork.workspace_id })));
    if (!fork || !source || fork.status === "ready" || fork.status === "failed") return this.#end(id, source?.part);
    this.#waiting.set(id, new Set([fork.workspace_id, ...fork.copies.map(({ workspace_id }) => workspace_id)]));
    await this.#setTimer(id, source.part);
    const snapshot = await store.get(findSnapshot({ id: fork.snapshot_id }));
    if (snapshot?.status === "creating") return;
    // All copies may have their files although the snapshot is deleted: then the server crashed before it stored the end.
    const isOver = fork.status === "creating" && (await this.#haveFiles(fork, fork.problems));
    if (snapshot?.status !== "ready" && !isOver) {
      const error = snapshot?.error || "The snapshot for the new workspaces was deleted.";
      return this.#complete(fork, source, { status: "failed", error: error });
    }
    if (fork.status === "copying") await this.#updateFork(fork, source, { status: "creating" });
    const problems = this.#created.has(id) ? fork.problems : await this.#createAll(fork, source);
    if (problems !== fork.problems) await this.#updateFork(fork, source, { problems });
    this.#created.add(id);
    if (!(await this.#haveFiles(fork, problems))) return;
    failpoint("fork_filled");
    const haveAllFailed = fork.copies.every(({ workspace_id }) => problems[workspace_id] !== undefined);
    const error = haveAllFailed ? (Object.values(problems)[0] ?? "") : "";
    await this.#complete(fork, source, haveAllFailed ? { status: "failed", error } : { status: "ready" });
  }

  /** Ensures that a timer is pending, which repeats the next step if a crash interrupts it. */
  async #setTimer(id: string, part: number): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    if ((this.#timers.get(id) ?? 0) > now) return;
    await store.commit([setTimer(FORK, id, CONTINUE_TIMER, now + CHECK_INTERVAL_MS)], { of: part });
    this.#timers.set(id, now + CHECK_INTERVAL_MS);
  }

  /** Creates the missing workspaces and copies the chats. Returns the problems of the copies that cannot be created. */
  async #createAll(fork: ForkRow, source: WorkspaceRow): Promise<ForkRow["problems"]> {
    const { store } = this.#deps;
    let { problems } = fork;
    const createOne = async (copy: PlannedCopy): Promise<void> => {
      if (problems[copy.workspace_id] !== undefined) return;
      const existing = await store.get(findWorkspace({ id: copy.workspace_id }));
      const problem = existing ? undefined : await this.#makeWorkspace(fork, source, copy);
      if (problem !== undefined) problems = { ...problems, [copy.workspace_id]: problem };
      else if (!existing?.deleted) await this.#copyChats(fork, copy);
    };
    await Promise.all(fork.copies.map(createOne));
    return problems;
  }

  /** Creates the workspace. Returns why that is not possible, or undefined. */
  async #makeWorkspace(fork: ForkRow, source: WorkspaceRow, copy: PlannedCopy): Promise<string | undefined> {
    const { workspaces, clock } = this.#deps;
    const { workspace_id: id, build } = copy;
    const restore = { workspace_id: source.id, snapshot_id: fork.snapshot_id };
    const create = (name: string): Promise<void> => {
      // Copies the settings of the original workspace, but not its shares and history.
      const { organization_id, template_id, automatic_updates, autostart_schedule, ttl_ms } = source;
      const schedule = copy.is_unscheduled
        ? { automatic_updates: "never" as const, autostart_schedule: null }
        : { automatic_updates, autostart_schedule };
      const settings = {
        organization_id,
        template_id,
        ttl_ms,
        ...schedule,
        name,
        owner_id: fork.owner_id,
        task_id: null,
      };
      const row = createWorkspaceRow(settings, { id, latest_build_id: build.id, now: clock.now() });
      // The owner's own start approves the schedule.
      const autostart_no_user_data = source.autostart_no_user_data && build.transition !== "start";
      const workspace = { ...row, autostart_no_user_data };
      workspaces.expect(id, workspace.part);
      return workspaces.ask(id, "create", { workspace, build: { ...build, restore } });
    };
    try {
      // Another workspace may have taken the name in the meantime.
      await create(copy.name).catch((error) => {
        if (!(error instanceof AppError) || error.kind !== "conflict") throw error;
        return create(`${trimEnd(copy.name.slice(0, 27), "-")}-${id.slice(0, 4)}`);
      });
      failpoint("fork_made");
      return undefined;
    } catch (error) {
      if (error instanceof CommitError && error.reason === "stale") return "The template was deleted in the meantime.";
      throw error;
    }
  }

  async #copyChats({ owner_id }: ForkRow, { workspace_id, chats }: PlannedCopy): Promise<void> {
    const { store, chats: actors } = this.#deps;
    for (const { from_chat_id: source_id, chat_id, ...copy } of chats) {
      if (await store.get(findChatAccessRow({ id: chat_id }))) continue;
      actors.expect(chat_id, owner_id);
      await actors.ask(chat_id, "fork", { source_id, workspace_id, ...copy }).catch((error) => {
        // The source chat was deleted in the meantime.
        if (!(error instanceof AppError) || error.kind !== "not_found") throw error;
      });
      failpoint("fork_chats");
    }
  }

  /** Returns whether each copy has its files, was deleted, or has a problem. */
  async #haveFiles({ copies, snapshot_id }: ForkRow, problems: ForkRow["problems"]): Promise<boolean> {
    const builds = await this.#deps.store.all(listBuildsOfFork({ restored_snapshot_id: snapshot_id }));
    const done = new Set(
      builds.flatMap((one) => (one.deleted || toJobStatus(one) === "succeeded" ? [one.workspace_id] : [])),
    );
    return copies.every(({ workspace_id }) => done.has(workspace_id) || problems[workspace_id] !== undefined);
  }

  /** Deletes the snapshot, then stores the fork's end. If that fails, the next check repeats it. */
  async #complete(fork: ForkRow, source: WorkspaceRow, patch: Partial<ForkRow>): Promise<void> {
    const { workspaces } = this.#deps;
    await workspaces
      .ask(source.id, "deleteSnapshot", { snapshot_id: fork.snapshot_id, by_keeper: true })
      .catch((error) => {
        if (!(error instanceof AppError) || error.kind !== "not_found") throw error;
      });
    failpoint("fork_ended");
    await this.#updateFork(fork, source, patch);
    await this.#end(fork.id, source.part);
  }

  async #updateFork({ id }: ForkRow, { part }: WorkspaceRow, patch: Partial<ForkRow>): Promise<void> {
    const { store, clock } = this.#deps;
    await store.commit([updateFork(id, { ...patch, updated_at: clock.now() })], { of: part });
  }

  async #end(id: string, part: number | undefined): Promise<void> {
    this.#untrack(id);
    await this.#deps.store.commit([clearTimer(FORK, id, CONTINUE_TIMER)], { of: part });
  }
}
