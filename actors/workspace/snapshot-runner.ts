// Makes and removes the files of snapshots, outside of any mailbox, and tells the workspace what came of it. Each person has one copy at a time, and
// the others do not wait for the rest of theirs. What a crash interrupts is on disk as it was asked for, and is done again at the next start
// (recovery.ts). What cannot be removed, such as at an engine that does not answer, is tried again until it can.
import type { Clock, Timer } from "#base/clock.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import type { Captured, Homes, SnapshotPlace } from "#src/provisioners/homes.ts";
import { type ModuleWork, ProvisionError, type SnapshotModule } from "#src/provisioners/provisioner.ts";
import { askPatiently, stopped } from "../job/patience.ts";
import type { Directory } from "../runtime/directory.ts";
import { ServerStopping } from "../runtime/job-queue.ts";
import { Turns } from "../runtime/turns.ts";
import type { WorkspaceActor } from "./actor.ts";
import type { Provisioners } from "./build-runner.ts";
import type { Snapshots, SubmittedSnapshot } from "./effects.ts";
import type { Late } from "./outcome.ts";

type Deps = {
  readonly clock: Clock;
  readonly provisioners: Provisioners;
  readonly workspaces: () => Directory<WorkspaceActor>;
  /** Makes the files of a home backup a copy of these homes. Rejects with ProvisionError. */
  readonly fetch: (
    homes: Homes,
    place: SnapshotPlace,
    home_backup_id: string,
    signal: AbortSignal,
  ) => Promise<Captured>;
  readonly module: ModuleLoads;
};

/** What a module of the template needs for a snapshot. Both reject with ProvisionError. */
export type ModuleLoads = {
  /** Also how the state that it leaves is stored. */
  readonly load: (
    place: SnapshotPlace,
  ) => Promise<{ readonly work: ModuleWork; readonly seal: (state: string) => string }>;
  /** Undefined where it has made nothing. */
  readonly loadMade: (place: SnapshotPlace) => Promise<ModuleWork | undefined>;
};

/** It could not be made, and part of it could not be removed. */
class PartlyMade extends ProvisionError {
  readonly sealed_state: string;
  constructor(message: string, sealed_state: string) {
    super(message);
    this.sealed_state = sealed_state;
  }
}

/** The error of a snapshot that failed and could not be removed ends with this. */
const LEFT = "What was created of it could not be removed. Delete the snapshot to try again.";

type Removal = "discard" | "clean";
type Task = SubmittedSnapshot & {
  readonly kind: "capture" | Removal;
  /** Fires when this server stops, or another node has the workspace. */
  readonly end: AbortController;
  readonly run: () => Promise<void>;
};

/** Copies take the disk's whole speed: more at the same time make all of them slower. */
const MAX_CONCURRENT = 2;
/** Everything in a workspace stands still for a copy; what takes longer than this is given up. */
const CAPTURE_TIMEOUT_MS = 30 * 60_000;
/** A backup comes over the network, while the workspace keeps running. */
const FETCH_TIMEOUT_MS = 12 * 3_600_000;
/** How what could not be removed is tried again: doubled up to the longest. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

export class SnapshotRunner implements Snapshots {
  readonly #deps: Deps;
  readonly #waiting: Task[] = [];
  readonly #running = new Map<Task, Promise<void>>();
  /** What is tried again. */
  readonly #later = new Map<Timer, SubmittedSnapshot>();
  readonly #turns = new Turns();
  #isStopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Makes the files of a snapshot. */
  capture(submitted: SubmittedSnapshot): void {
    this.#submit("capture", submitted, (end) => this.#capture(submitted, end));
  }

  /** Removes the files of a snapshot. */
  discard(submitted: SubmittedSnapshot): void {
    this.#remove("discard", submitted, 0);
  }

  /** Removes what a snapshot that failed has left, and lets the workspace go on. */
  clean(submitted: SubmittedSnapshot): void {
    this.#remove("clean", submitted, 0);
  }

  /** Ends what is under way; the next start does it again. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.leave(() => true);
  }

  /** Ends what is under way of these parts: other nodes do it again. Resolves when none of it runs here. */
  async leave(isLeaving: (part: number) => boolean): Promise<void> {
    for (const [timer, { part }] of this.#later) {
      if (!isLeaving(part)) continue;
      timer.cancel();
      this.#later.delete(timer);
    }
    const staying = this.#waiting.filter(({ part }) => !isLeaving(part));
    this.#waiting.splice(0, this.#waiting.length, ...staying);
    const leaving = [...this.#running].filter(([{ part }]) => isLeaving(part));
    for (const [{ end }] of leaving) end.abort(new ServerStopping());
    await Promise.all(leaving.map(([, done]) => done));
  }

  #submit(kind: Task["kind"], of: SubmittedSnapshot, run: (end: AbortSignal) => Promise<void>): void {
    if (this.#isStopped) return;
    const isSame = (other: Task): boolean =>
      other.kind === kind && other.snapshot_id === of.snapshot_id && !other.end.signal.aborted;
    if ([...this.#waiting, ...this.#running.keys()].some(isSame)) return;
    const end = new AbortController();
    this.#waiting.push({ ...of, kind, end, run: () => run(end.signal) });
    this.#fill();
  }

  /**
   * One at a time for a person, and so for a workspace: removing a snapshot lets the workspace go on, which must stand still while another one is
   * made.
   */
  #fill(): void {
    while (this.#running.size < MAX_CONCURRENT) {
      const [task] = this.#turns.order(this.#waiting);
      if (!task) return;
      this.#waiting.splice(this.#waiting.indexOf(task), 1);
      this.#turns.begin(task);
      const done = task.run().finally(() => {
        this.#running.delete(task);
        this.#turns.end(task);
        this.#fill();
      });
      this.#running.set(task, done);
    }
  }

  async #capture(submitted: SubmittedSnapshot, end: AbortSignal): Promise<void> {
    const { clock, fetch } = this.#deps;
    const { workspace_id, snapshot_id, provisioner, home_backup_id } = submitted;
    const place = { workspace_id, snapshot_id };
    const limit = new AbortController();
    const late = new ProvisionError("The copy took too long. Stop the workspace, and try again.");
    const timer = clock.after(home_backup_id === null ? CAPTURE_TIMEOUT_MS : FETCH_TIMEOUT_MS, () => limit.abort(late));
    const signal = AbortSignal.any([end, limit.signal]);
    try {
      const module = this.#module(provisioner);
      if (module) return await this.#captureByModule(module, place, { signal, end });
      const homes = this.#homes(provisioner);
      const made = await (home_backup_id === null
        ? homes.capture(place, signal)
        : fetch(homes, place, home_backup_id, signal));
      await this.#tell(end, () => this.#ask(workspace_id, "snapshotCaptured", { snapshot_id, ...made }));
    } catch (error) {
      if (stopped(signal)) return;
      const words = error instanceof ProvisionError ? error.message : "An internal error ended the copy.";
      if (!(error instanceof ProvisionError))
        log("snapshots").error("{snapshot_id} failed: {error}", { snapshot_id, error });
      const left = error instanceof PartlyMade ? { sealed_state: error.sealed_state } : {};
      const failed = { snapshot_id, error: words, ...left };
      const reply = await this.#tell(end, () => this.#ask(workspace_id, "snapshotFailed", failed));
      const module = this.#module(provisioner);
      if (module && reply === "done") await module.forget(place);
      // What made the copy fail may have kept it from being removed, too, and the workspace from going on.
      if (!module && !end.aborted) this.#removeLater("clean", submitted, 0);
    } finally {
      timer.cancel();
    }
  }

  async #captureByModule(
    module: SnapshotModule,
    place: SnapshotPlace,
    { signal, end }: { readonly signal: AbortSignal; readonly end: AbortSignal },
  ): Promise<void> {
    const { workspace_id, snapshot_id } = place;
    const { work, seal } = await this.#deps.module.load(place);
    const state = await module.make(place, work, signal).catch(async (error) => {
      if (end.aborted || !(error instanceof ProvisionError)) throw error;
      const left = await removePart(module, place, { ...work, state: error.left?.state ?? null }, end);
      throw left === null ? error : new PartlyMade(`${error.message} ${LEFT}`, seal(left));
    });
    const made = { snapshot_id, method: "module", bytes: 0, sealed_state: seal(state) } as const;
    const reply = await this.#tell(end, () => this.#ask(workspace_id, "snapshotCaptured", made));
    failpoint("module_stored");
    // Another node was faster: what is stored is what that has made.
    if (reply === "stale" && work.state === null) await module.remove(place, { ...work, state }, end);
    if (reply !== undefined) await module.forget(place);
  }

  #remove(kind: Removal, submitted: SubmittedSnapshot, failures: number): void {
    this.#submit(kind, submitted, (end) => this.#tryRemoving(kind, submitted, { failures, end }));
  }

  async #tryRemoving(
    kind: Removal,
    submitted: SubmittedSnapshot,
    { failures, end }: { readonly failures: number; readonly end: AbortSignal },
  ): Promise<void> {
    const { provisioner, workspace_id, snapshot_id } = submitted;
    try {
      await this.#discardNow(kind, provisioner, { workspace_id, snapshot_id }, end);
    } catch (error) {
      if (failures === 0)
        log("snapshots").warn("the files of {snapshot_id} cannot be removed yet: {error}", { snapshot_id, error });
      if (!end.aborted) this.#removeLater(kind, submitted, failures + 1);
      return;
    }
    if (kind === "clean") return;
    failpoint("snapshot_discarded");
    await this.#tell(end, () => this.#ask(workspace_id, "snapshotDropped", { snapshot_id }));
  }

  async #discardNow(kind: Removal, provisioner: string, place: SnapshotPlace, end: AbortSignal): Promise<void> {
    const module = this.#module(provisioner);
    if (!module) return this.#homes(provisioner).discard(place);
    // What it has made before it failed was removed then, or is removed when the snapshot is deleted.
    if (kind === "clean") return;
    const work = await this.#deps.module.loadMade(place);
    if (work) await module.remove(place, work, end);
    failpoint("module_removed");
    await module.forget(place);
  }

  #removeLater(kind: Removal, submitted: SubmittedSnapshot, failures: number): void {
    const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(failures, 10));
    const timer = this.#deps.clock.after(delay, () => {
      this.#later.delete(timer);
      this.#remove(kind, submitted, failures);
    });
    this.#later.set(timer, submitted);
  }

  #module(provisioner: string): SnapshotModule | undefined {
    return this.#deps.provisioners.get(provisioner)?.module;
  }

  #homes(provisioner: string): Homes {
    const homes = this.#deps.provisioners.get(provisioner)?.homes;
    if (homes) return homes;
    throw new ProvisionError(`This server makes no snapshots of workspaces of the kind "${provisioner}".`);
  }

  #ask: Directory<WorkspaceActor>["ask"] = (...message) => this.#deps.workspaces().ask(...message);

  /** Reports to the workspace, patiently. Undefined if the report fails: the work is repeated at the next start. */
  async #tell(end: AbortSignal, ask: () => Promise<Late>): Promise<Late | undefined> {
    try {
      return await askPatiently(this.#deps.clock, end, ask);
    } catch (error) {
      if (!stopped(end)) log("snapshots").error("a result cannot be reported: {error}", { error });
      return undefined;
    }
  }
}

/** Removes what a module has made before it failed. Resolves with the rest where that fails, too. */
const removePart = async (
  module: SnapshotModule,
  place: SnapshotPlace,
  work: ModuleWork,
  end: AbortSignal,
): Promise<string | null> => {
  try {
    await module.remove(place, work, end);
    return null;
  } catch (error) {
    if (end.aborted) throw error;
    return error instanceof ProvisionError && error.left ? error.left.state : work.state;
  }
};
