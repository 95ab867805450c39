// Makes the workspaces of each fork, once: when the snapshot is there that they begin with, each is made with a build that gives it the files, and
// its chats are copied. A timer row stands for what is still to be done, and all ids are chosen beforehand, so a crash repeats it and makes
// nothing twice (rules FO-1 to FO-6).
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import { type PartNumbers, partOf } from "#base/parts.ts";
import type { Topics } from "#base/topics.ts";
import { findChatPlace } from "#db/chats/chats.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import type { PlannedCopy } from "#db/schema/forks.ts";
import { type ForkRow, findFork, listBuildsOfFork, listOpenForks, updateFork } from "#db/workspaces/forks.ts";
import { findSnapshot } from "#db/workspaces/snapshots.ts";
import { findWorkspace, type WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { jobStatus } from "#schema/workspaces/job.ts";
import type { ChatActor } from "../chat/actor.ts";
import type { Directory } from "../runtime/directory.ts";
import type { Events } from "../runtime/events.ts";
import { Looks } from "../runtime/looks.ts";
import { outsideTurn } from "../runtime/mailbox.ts";
import type { WorkspaceActor } from "../workspace/actor.ts";
import { newRow } from "../workspace/new-row.ts";

/** The kind and the name of its timers. */
export const FORK = "fork";
export const GO_ON = "go_on";

/** Looks also without news, in case one was missed. */
const LOOK_MS = 30_000;

export type ForkKeeperDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly chats: Directory<ChatActor>;
};

export class ForkKeeper {
  readonly #deps: ForkKeeperDeps;
  /** By fork: the workspaces whose news matter to it. */
  readonly #waiting = new Map<string, ReadonlySet<string>>();
  /** Those whose workspaces and chats are all made: only their files are waited for. */
  readonly #made = new Set<string>();
  /** When the timers come that are set. */
  readonly #timers = new Map<string, number>();
  readonly #looks = new Looks(
    (id) => this.#lookOnce(id),
    (fork_id, error) => {
      log("forks").error("fork {fork_id} cannot be looked at: {error}", { fork_id, error });
      return "later";
    },
  );

  constructor(deps: ForkKeeperDeps) {
    this.#deps = deps;
    const heard = (workspace_id: string): void => {
      for (const [fork_id, ids] of this.#waiting) {
        if (ids.has(workspace_id)) outsideTurn(() => void this.#looks.look(fork_id));
      }
    };
    deps.topics.subscribeAll("workspace", heard);
    deps.topics.subscribeAll("workspace_changed", heard);
    deps.topics.subscribeAll("missed", () => {
      for (const fork_id of this.#waiting.keys()) outsideTurn(() => void this.#looks.look(fork_id));
    });
  }

  /** Continues a fork whenever something of its workspaces changes. */
  wait(fork_id: string): void {
    void this.#looks.look(fork_id);
  }

  /** After a start, or when these parts have come: open forks continue. */
  async start(parts?: PartNumbers): Promise<void> {
    for (const { id } of await this.#deps.store.all(listOpenForks(parts))) this.wait(id);
  }

  /** Other nodes look after the forks of other parts than these from now on. Resolves when no look at one is under way. */
  async leave(left: PartNumbers): Promise<void> {
    for (const id of this.#waiting.keys()) this.#forget(id);
    await this.#looks.settled();
    await this.start(left);
  }

  stop(): Promise<void> {
    return this.#looks.stop();
  }

  /** A timer of a fork has come. */
  due(id: string): Promise<void> {
    return this.#looks.look(id);
  }

  #forget(id: string): void {
    this.#waiting.delete(id);
    this.#made.delete(id);
    this.#timers.delete(id);
  }

  async #lookOnce(id: string): Promise<void> {
    const { store } = this.#deps;
    const fork = await store.get(findFork({ id }));
    const source = fork && (await store.get(findWorkspace({ id: fork.workspace_id })));
    if (!fork || !source || fork.status === "ready" || fork.status === "failed") return this.#end(id, source?.part);
    this.#waiting.set(id, new Set([fork.workspace_id, ...fork.copies.map(({ workspace_id }) => workspace_id)]));
    await this.#setTimer(id, source.part);
    const snapshot = await store.get(findSnapshot({ id: fork.snapshot_id }));
    if (snapshot?.status === "creating") return;
    // It may be gone because all have their files, and a crash came before that was written.
    const isOver = fork.status === "creating" && (await this.#areFilled(fork, fork.problems));
    if (snapshot?.status !== "ready" && !isOver) {
      const words = snapshot?.error || "The snapshot that the workspaces were to begin with was deleted.";
      return this.#settle(fork, source, { status: "failed", error: words });
    }
    if (fork.status === "copying") await this.#write(fork, source, { status: "creating" });
    const problems = this.#made.has(id) ? fork.problems : await this.#makeAll(fork, source);
    if (problems !== fork.problems) await this.#write(fork, source, { problems });
    this.#made.add(id);
    if (!(await this.#areFilled(fork, problems))) return;
    failpoint("fork_filled");
    const isAllLost = fork.copies.every(({ workspace_id }) => problems[workspace_id] !== undefined);
    const error = isAllLost ? (Object.values(problems)[0] ?? "") : "";
    await this.#settle(fork, source, isAllLost ? { status: "failed", error } : { status: "ready" });
  }

  /** Whatever comes next may end in the middle; one that is set for later is enough. */
  async #setTimer(id: string, part: number): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    if ((this.#timers.get(id) ?? 0) > now) return;
    await store.commit([setTimer(FORK, id, GO_ON, now + LOOK_MS)], undefined, part);
    this.#timers.set(id, now + LOOK_MS);
  }

  /** Makes what is not there yet; why some of it cannot be, with what was known of that. */
  async #makeAll(fork: ForkRow, source: WorkspaceRow): Promise<ForkRow["problems"]> {
    const { store } = this.#deps;
    let { problems } = fork;
    const make = async (copy: PlannedCopy): Promise<void> => {
      if (problems[copy.workspace_id] !== undefined) return;
      const there = await store.get(findWorkspace({ id: copy.workspace_id }));
      const problem = there ? undefined : await this.#makeWorkspace(fork, source, copy);
      if (problem !== undefined) problems = { ...problems, [copy.workspace_id]: problem };
      else if (!there?.deleted) await this.#copyChats(fork, copy);
    };
    await Promise.all(fork.copies.map(make));
    return problems;
  }

  /** Answers why it cannot be made. */
  async #makeWorkspace(fork: ForkRow, source: WorkspaceRow, copy: PlannedCopy): Promise<string | undefined> {
    const { workspaces, clock } = this.#deps;
    const { workspace_id: id, build } = copy;
    const restore = { workspace_id: source.id, snapshot_id: fork.snapshot_id };
    const create = (name: string): Promise<void> => {
      // Its settings are those of the first workspace; whom that is shared with and what became of it is not copied.
      const { organization_id, template_id, automatic_updates, autostart_schedule, ttl_ms } = source;
      const kept = { organization_id, template_id, automatic_updates, autostart_schedule, ttl_ms };
      const settings = { ...kept, name, owner_id: fork.owner_id, task_id: null };
      const workspace = newRow(settings, { id, latest_build_id: build.id, now: clock.now() });
      workspaces.expect(id, workspace.part);
      return workspaces.ask(id, "create", { workspace, build: { ...build, restore } });
    };
    try {
      // Somebody may have taken the name since it was chosen.
      await create(copy.name).catch((error) => {
        if (!(error instanceof AppError) || error.kind !== "conflict") throw error;
        return create(`${copy.name.slice(0, 27).replace(/-+$/, "")}-${id.slice(0, 4)}`);
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
      if (await store.get(findChatPlace({ id: chat_id }))) continue;
      actors.expect(chat_id, partOf(owner_id));
      await actors.ask(chat_id, "fork", { source_id, workspace_id, ...copy }).catch((error) => {
        // It was deleted in the meantime.
        if (!(error instanceof AppError) || error.kind !== "not_found") throw error;
      });
      failpoint("fork_chats");
    }
  }

  /** Each has its files, was deleted, or could not be made. */
  async #areFilled({ copies, snapshot_id }: ForkRow, problems: ForkRow["problems"]): Promise<boolean> {
    const builds = await this.#deps.store.all(listBuildsOfFork({ restored_snapshot_id: snapshot_id }));
    const done = new Set(
      builds.flatMap((one) => (one.deleted || jobStatus(one) === "succeeded" ? [one.workspace_id] : [])),
    );
    return copies.every(({ workspace_id }) => done.has(workspace_id) || problems[workspace_id] !== undefined);
  }

  /** The snapshot goes with its end; one that goes without it is looked after by the next look. */
  async #settle(fork: ForkRow, source: WorkspaceRow, end: Partial<ForkRow>): Promise<void> {
    const { workspaces } = this.#deps;
    await workspaces
      .ask(source.id, "deleteSnapshot", { snapshot_id: fork.snapshot_id, by_keeper: true })
      .catch((error) => {
        if (!(error instanceof AppError) || error.kind !== "not_found") throw error;
      });
    failpoint("fork_ended");
    await this.#write(fork, source, end);
    await this.#end(fork.id, source.part);
  }

  async #write({ id }: ForkRow, { part }: WorkspaceRow, patch: Partial<ForkRow>): Promise<void> {
    const { store, clock } = this.#deps;
    await store.commit([updateFork(id, { ...patch, updated_at: clock.now() })], undefined, part);
  }

  async #end(id: string, part: number | undefined): Promise<void> {
    this.#forget(id);
    await this.#deps.store.commit([clearTimer(FORK, id, GO_ON)], undefined, part);
  }
}
