// Makes and removes the files of snapshots, outside of any mailbox, and tells the workspace what came of it. Each person has one copy at a time, and
// the others do not wait for the rest of theirs. What a crash interrupts is on disk as it was asked for, and is done again at the next start
// (recovery.ts). What cannot be removed, such as at an engine that does not answer, is tried again until it can.
import type { Clock, Timer } from "#base/clock.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import type { Captured, Homes, SnapshotPlace } from "#src/provisioners/homes.ts";
import { ProvisionError } from "#src/provisioners/provisioner.ts";
import { askPatiently, stopped } from "../job/patience.ts";
import type { Directory } from "../runtime/directory.ts";
import { ServerStopping } from "../runtime/job-queue.ts";
import { Turns } from "../runtime/turns.ts";
import type { WorkspaceActor } from "./actor.ts";
import type { Provisioners } from "./build-runner.ts";
import type { Snapshots, SubmittedSnapshot } from "./effects.ts";

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
};

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
      await this.#tell(end, () => this.#ask(workspace_id, "snapshotFailed", { snapshot_id, error: words }));
      // What made the copy fail may have kept it from being removed, too, and the workspace from going on.
      if (!end.aborted) this.#removeLater("clean", submitted, 0);
    } finally {
      timer.cancel();
    }
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
      await this.#homes(provisioner).discard({ workspace_id, snapshot_id });
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

  #removeLater(kind: Removal, submitted: SubmittedSnapshot, failures: number): void {
    const delay = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** Math.min(failures, 10));
    const timer = this.#deps.clock.after(delay, () => {
      this.#later.delete(timer);
      this.#remove(kind, submitted, failures);
    });
    this.#later.set(timer, submitted);
  }

  #homes(provisioner: string): Homes {
    const homes = this.#deps.provisioners.get(provisioner)?.homes;
    if (homes) return homes;
    throw new ProvisionError(`This server makes no snapshots of workspaces of the kind "${provisioner}".`);
  }

  #ask: Directory<WorkspaceActor>["ask"] = (...message) => this.#deps.workspaces().ask(...message);

  /** Tells the workspace, patiently; what it cannot be told is done again at the next start. */
  async #tell(end: AbortSignal, ask: () => Promise<unknown>): Promise<void> {
    try {
      await askPatiently(this.#deps.clock, end, ask);
    } catch (error) {
      if (!stopped(end)) log("snapshots").error("a result cannot be reported: {error}", { error });
    }
  }
}
