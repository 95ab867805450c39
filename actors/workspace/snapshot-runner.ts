// Creates and deletes the files of snapshots outside of any mailbox, and reports to the workspace. Works on one snapshot of each owner at a
// time, so that no owner waits for the many snapshots of another. After a restart, recovery.ts submits interrupted work again. A failed
// deletion, for example because an engine does not answer, is retried until it succeeds.
import type { Clock, Timer } from "#base/clock.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import type { CaptureResult, Homes, SnapshotRef } from "#src/provisioners/homes.ts";
import { type ModuleWork, ProvisionError, type SnapshotModule } from "#src/provisioners/provisioner.ts";
import { askWithRetries, isServerStopping } from "../job/report-retries.ts";
import type { Directory } from "../runtime/directory.ts";
import { ServerStopping } from "../runtime/job-queue.ts";
import { Turns } from "../runtime/turns.ts";
import type { WorkspaceActor } from "./actor.ts";
import type { Provisioners } from "./build-runner.ts";
import type { Snapshots, SubmittedSnapshot } from "./effects.ts";
import type { LateResult } from "./outcome.ts";

type Deps = {
  readonly clock: Clock;
  readonly provisioners: Provisioners;
  readonly workspaces: () => Directory<WorkspaceActor>;
  /** Creates a snapshot from the files of a home backup. Rejects with ProvisionError. */
  readonly fetch: (
    homes: Homes,
    ref: SnapshotRef,
    home_backup_id: string,
    signal: AbortSignal,
  ) => Promise<CaptureResult>;
  readonly module: ModuleLoads;
};

/** Loads the input of a template's module for a snapshot. Both functions reject with ProvisionError. */
export type ModuleLoads = {
  /** `seal` encrypts the resulting state. */
  readonly load: (ref: SnapshotRef) => Promise<{ readonly work: ModuleWork; readonly seal: (state: string) => string }>;
  /** Loads the input for a deletion; undefined if the module has created nothing. */
  readonly loadMade: (ref: SnapshotRef) => Promise<ModuleWork | undefined>;
};

/** Thrown if the creation of a snapshot failed and a part of it could not be deleted. */
class PartlyCreatedError extends ProvisionError {
  readonly sealed_state: string;
  constructor(message: string, sealed_state: string) {
    super(message);
    this.sealed_state = sealed_state;
  }
}

const LEFTOVER_HINT = "The partial copy could not be removed. Delete the snapshot to try again.";

type Removal = "discard" | "clean";
type Task = SubmittedSnapshot & {
  readonly kind: "capture" | Removal;
  /** Aborts when this server stops, or when the workspace moves to another node. */
  readonly stopper: AbortController;
  readonly run: () => Promise<void>;
};

/** Maximum concurrent copies. More copies would only be slower, because a single copy already uses the disk's full speed. */
const MAX_CONCURRENT = 2;
/** A copy that takes longer fails, because the workspace is paused during it. */
const CAPTURE_TIMEOUT_MS = 30 * 60_000;
/** The workspace keeps running while a backup is downloaded. */
const FETCH_TIMEOUT_MS = 12 * 3_600_000;
/** Delay before the first retry of a deletion. It doubles up to the maximum. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

export class SnapshotRunner implements Snapshots {
  readonly #deps: Deps;
  readonly #waiting: Task[] = [];
  readonly #running = new Map<Task, Promise<void>>();
  /** Scheduled retries. */
  readonly #retries = new Map<Timer, SubmittedSnapshot>();
  readonly #turns = new Turns();
  #isStopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  capture(submitted: SubmittedSnapshot): void {
    this.#submit("capture", submitted, (stopSignal) => this.#capture(submitted, stopSignal));
  }

  discard(submitted: SubmittedSnapshot): void {
    this.#remove("discard", submitted, 0);
  }

  /** Also unpauses the workspace. */
  clean(submitted: SubmittedSnapshot): void {
    this.#remove("clean", submitted, 0);
  }

  /** Stops running work. The next start of the server repeats it. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.release(() => true);
  }

  /** Stops work on rows that move to other nodes, which repeat it. Resolves when no such work is running here. */
  async release(isLeaving: IsLeaving): Promise<void> {
    for (const [timer, { part }] of this.#retries) {
      if (!isLeaving(part)) continue;
      timer.cancel();
      this.#retries.delete(timer);
    }
    const staying = this.#waiting.filter(({ part }) => !isLeaving(part));
    this.#waiting.splice(0, this.#waiting.length, ...staying);
    const leaving = [...this.#running].filter(([{ part }]) => isLeaving(part));
    for (const [{ stopper }] of leaving) stopper.abort(new ServerStopping());
    await Promise.all(leaving.map(([, done]) => done));
  }

  #submit(kind: Task["kind"], submitted: SubmittedSnapshot, run: (stopSignal: AbortSignal) => Promise<void>): void {
    if (this.#isStopped) return;
    const isSame = (other: Task): boolean =>
      other.kind === kind && other.snapshot_id === submitted.snapshot_id && !other.stopper.signal.aborted;
    if ([...this.#waiting, ...this.#running.keys()].some(isSame)) return;
    const stopper = new AbortController();
    this.#waiting.push({ ...submitted, kind, stopper, run: () => run(stopper.signal) });
    this.#startNext();
  }

  /**
   * Runs one task per owner, and therefore per workspace. Otherwise, deleting one snapshot would unpause the workspace while another
   * snapshot is being created.
   */
  #startNext(): void {
    while (this.#running.size < MAX_CONCURRENT) {
      const [task] = this.#turns.order(this.#waiting);
      if (!task) return;
      this.#waiting.splice(this.#waiting.indexOf(task), 1);
      this.#turns.begin(task);
      const done = task.run().finally(() => {
        this.#running.delete(task);
        this.#turns.end(task);
        this.#startNext();
      });
      this.#running.set(task, done);
    }
  }

  async #capture(submitted: SubmittedSnapshot, stopSignal: AbortSignal): Promise<void> {
    const { clock, fetch } = this.#deps;
    const { workspace_id, snapshot_id, provisioner, home_backup_id } = submitted;
    const ref = { workspace_id, snapshot_id };
    const timeout = new AbortController();
    const timeoutError = new ProvisionError("The copy took too long. Stop the workspace, and try again.");
    const timer = clock.after(home_backup_id === null ? CAPTURE_TIMEOUT_MS : FETCH_TIMEOUT_MS, () =>
      timeout.abort(timeoutError),
    );
    const signal = AbortSignal.any([stopSignal, timeout.signal]);
    try {
      const module = this.#findModule(provisioner);
      if (module) return await this.#captureByModule(module, ref, { signal, stopSignal });
      const homes = this.#requireHomes(provisioner);
      const created = await (home_backup_id === null
        ? homes.capture(ref, signal)
        : fetch(homes, ref, home_backup_id, signal));
      await this.#report(stopSignal, () => this.#ask(workspace_id, "snapshotCaptured", { snapshot_id, ...created }));
    } catch (error) {
      if (isServerStopping(signal)) return;
      const message = error instanceof ProvisionError ? error.message : "The copy failed because of an internal error.";
      if (!(error instanceof ProvisionError))
        log("snapshots").error("{snapshot_id} failed: {error}", { snapshot_id, error });
      const leftState = error instanceof PartlyCreatedError ? { sealed_state: error.sealed_state } : {};
      const failure = { snapshot_id, error: message, ...leftState };
      const reply = await this.#report(stopSignal, () => this.#ask(workspace_id, "snapshotFailed", failure));
      const module = this.#findModule(provisioner);
      if (module && reply === "done") await module.releaseState(ref);
      // The cause of the failure may also have prevented the deletion of the copy, or left the workspace paused.
      if (!module && !stopSignal.aborted) this.#removeLater("clean", submitted, 0);
    } finally {
      timer.cancel();
    }
  }

  async #captureByModule(
    module: SnapshotModule,
    ref: SnapshotRef,
    { signal, stopSignal }: { readonly signal: AbortSignal; readonly stopSignal: AbortSignal },
  ): Promise<void> {
    const { workspace_id, snapshot_id } = ref;
    const { work, seal } = await this.#deps.module.load(ref);
    const state = await module.make(ref, work, signal).catch(async (error) => {
      if (stopSignal.aborted || !(error instanceof ProvisionError)) throw error;
      const leftState = await removePartial(module, ref, { ...work, state: error.left?.state ?? null }, stopSignal);
      throw leftState === null ? error : new PartlyCreatedError(`${error.message} ${LEFTOVER_HINT}`, seal(leftState));
    });
    const created = { snapshot_id, method: "module", bytes: 0, sealed_state: seal(state) } as const;
    const reply = await this.#report(stopSignal, () => this.#ask(workspace_id, "snapshotCaptured", created));
    failpoint("module_stored");
    // The workspace has stored the result of another node, so this snapshot is deleted.
    if (reply === "stale" && work.state === null) await module.remove(ref, { ...work, state }, stopSignal);
    if (reply !== undefined) await module.releaseState(ref);
  }

  #remove(kind: Removal, submitted: SubmittedSnapshot, failures: number): void {
    this.#submit(kind, submitted, (stopSignal) => this.#tryRemoving(kind, submitted, { failures, stopSignal }));
  }

  async #tryRemoving(
    kind: Removal,
    submitted: SubmittedSnapshot,
    { failures, stopSignal }: { readonly failures: number; readonly stopSignal: AbortSignal },
  ): Promise<void> {
    const { provisioner, workspace_id, snapshot_id } = submitted;
    try {
      await this.#discardNow(kind, provisioner, { workspace_id, snapshot_id }, stopSignal);
    } catch (error) {
      if (failures === 0)
        log("snapshots").warn("cannot delete the files of {snapshot_id} yet: {error}", { snapshot_id, error });
      if (!stopSignal.aborted) this.#removeLater(kind, submitted, failures + 1);
      return;
    }
    if (kind === "clean") return;
    failpoint("snapshot_discarded");
    await this.#report(stopSignal, () => this.#ask(workspace_id, "snapshotDropped", { snapshot_id }));
  }

  async #discardNow(kind: Removal, provisioner: string, ref: SnapshotRef, stopSignal: AbortSignal): Promise<void> {
    const module = this.#findModule(provisioner);
    if (!module) return this.#requireHomes(provisioner).discard(ref);
    // The parts that a failed module has created are already deleted, or are deleted with the snapshot.
    if (kind === "clean") return;
    const work = await this.#deps.module.loadMade(ref);
    if (work) await module.remove(ref, work, stopSignal);
    failpoint("module_removed");
    await module.releaseState(ref);
  }

  #removeLater(kind: Removal, submitted: SubmittedSnapshot, failures: number): void {
    const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(failures, 10));
    const timer = this.#deps.clock.after(delay, () => {
      this.#retries.delete(timer);
      this.#remove(kind, submitted, failures);
    });
    this.#retries.set(timer, submitted);
  }

  #findModule(provisioner: string): SnapshotModule | undefined {
    return this.#deps.provisioners.get(provisioner)?.module;
  }

  #requireHomes(provisioner: string): Homes {
    const homes = this.#deps.provisioners.get(provisioner)?.homes;
    if (homes) return homes;
    throw new ProvisionError(`This server cannot create snapshots of workspaces of the kind "${provisioner}".`);
  }

  #ask: Directory<WorkspaceActor>["ask"] = (...message) => this.#deps.workspaces().ask(...message);

  /** Reports to the workspace, with retries. If that fails, returns undefined, and the next start of the server repeats the work. */
  async #report(stopSignal: AbortSignal, ask: () => Promise<LateResult>): Promise<LateResult | undefined> {
    try {
      return await askWithRetries(this.#deps.clock, stopSignal, ask);
    } catch (error) {
      if (!isServerStopping(stopSignal))
        log("snapshots").error("cannot report the result of a snapshot: {error}", { error });
      return undefined;
    }
  }
}

/** Deletes the parts that a module created before it failed. Returns the state of the parts that could not be deleted; null for none. */
const removePartial = async (
  module: SnapshotModule,
  ref: SnapshotRef,
  work: ModuleWork,
  stopSignal: AbortSignal,
): Promise<string | null> => {
  try {
    await module.remove(ref, work, stopSignal);
    return null;
  } catch (error) {
    if (stopSignal.aborted) throw error;
    return error instanceof ProvisionError && error.left ? error.left.state : work.state;
  }
};
