// Makes and removes the files of snapshots, outside of any mailbox, and tells the workspace what came of it. Each person has one copy at a time and
// the others do not wait for the rest of theirs. What a crash interrupts is on disk
// as it was asked for, and is done again at the next start (recovery.ts).
import type { Clock } from "#base/clock.ts";
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

type Task = SubmittedSnapshot & { readonly run: () => Promise<void> };

/** Copies take the disk's whole speed: more at the same time make all of them slower. */
const MAX_CONCURRENT = 2;
/** Everything in a workspace stands still for a copy; what takes longer than this is given up. */
const CAPTURE_TIMEOUT_MS = 30 * 60_000;
/** A backup comes over the network, while the workspace keeps running. */
const FETCH_TIMEOUT_MS = 12 * 3_600_000;

export class SnapshotRunner implements Snapshots {
  readonly #deps: Deps;
  readonly #waiting: Task[] = [];
  readonly #running = new Map<string, Promise<void>>();
  readonly #turns = new Turns();
  readonly #end = new AbortController();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Makes the files of a snapshot. */
  capture(submitted: SubmittedSnapshot): void {
    this.#submit(submitted, () => this.#capture(submitted));
  }

  /** Removes the files of a snapshot. */
  discard(submitted: SubmittedSnapshot): void {
    this.#submit(submitted, () => this.#discard(submitted));
  }

  /** Ends what is under way; the next start does it again. */
  async stop(): Promise<void> {
    this.#end.abort(new ServerStopping());
    this.#waiting.length = 0;
    await Promise.all(this.#running.values());
  }

  #submit(submitted: SubmittedSnapshot, run: () => Promise<void>): void {
    const { snapshot_id } = submitted;
    if (this.#end.signal.aborted) return;
    if (this.#running.has(snapshot_id) || this.#waiting.some((task) => task.snapshot_id === snapshot_id)) return;
    this.#waiting.push({ ...submitted, run });
    this.#fill();
  }

  #fill(): void {
    while (this.#running.size < MAX_CONCURRENT) {
      const [task] = this.#turns.order(this.#waiting);
      if (!task) return;
      this.#waiting.splice(this.#waiting.indexOf(task), 1);
      this.#turns.begin(task);
      const done = task.run().finally(() => {
        this.#running.delete(task.snapshot_id);
        this.#turns.end(task);
        this.#fill();
      });
      this.#running.set(task.snapshot_id, done);
    }
  }

  async #capture(submitted: SubmittedSnapshot): Promise<void> {
    const { clock, fetch } = this.#deps;
    const { workspace_id, snapshot_id, provisioner, home_backup_id } = submitted;
    const place = { workspace_id, snapshot_id };
    const end = new AbortController();
    const late = new ProvisionError("The copy took too long. Stop the workspace, and try again.");
    const timer = clock.after(home_backup_id === null ? CAPTURE_TIMEOUT_MS : FETCH_TIMEOUT_MS, () => end.abort(late));
    const signal = AbortSignal.any([this.#end.signal, end.signal]);
    try {
      const homes = this.#homes(provisioner);
      const made = await (home_backup_id === null
        ? homes.capture(place, signal)
        : fetch(homes, place, home_backup_id, signal));
      await this.#tell(() => this.#ask(workspace_id, "snapshotCaptured", { snapshot_id, ...made }));
    } catch (error) {
      if (stopped(signal)) return;
      const words = error instanceof ProvisionError ? error.message : "An internal error ended the copy.";
      if (!(error instanceof ProvisionError))
        log("snapshots").error("{snapshot_id} failed: {error}", { snapshot_id, error });
      await this.#tell(() => this.#ask(workspace_id, "snapshotFailed", { snapshot_id, error: words }));
    } finally {
      timer.cancel();
    }
  }

  async #discard({ provisioner, workspace_id, snapshot_id }: SubmittedSnapshot): Promise<void> {
    try {
      await this.#homes(provisioner).discard({ workspace_id, snapshot_id });
      failpoint("snapshot_discarded");
      await this.#tell(() => this.#ask(workspace_id, "snapshotDropped", { snapshot_id }));
    } catch (error) {
      // It stays marked, and the next start or the next try removes it.
      log("snapshots").warn("the files of {snapshot_id} could not be removed: {error}", { snapshot_id, error });
    }
  }

  #homes(provisioner: string): Homes {
    const homes = this.#deps.provisioners.get(provisioner)?.homes;
    if (homes) return homes;
    throw new ProvisionError(`This server makes no snapshots of workspaces of the kind "${provisioner}".`);
  }

  #ask: Directory<WorkspaceActor>["ask"] = (...message) => this.#deps.workspaces().ask(...message);

  /** Tells the workspace, patiently; what it cannot be told is done again at the next start. */
  async #tell(ask: () => Promise<unknown>): Promise<void> {
    try {
      await askPatiently(this.#deps.clock, this.#end.signal, ask);
    } catch (error) {
      if (!stopped(this.#end.signal)) log("snapshots").error("a result cannot be reported: {error}", { error });
    }
  }
}
