// Creates, verifies and deletes home backups of this node's workspaces, one operation at a time for each person, outside of any mailbox.
// Each pending operation is a row with all IDs that it needs, so it is repeated after a crash (rules HB-1 to HB-9).
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { AppError } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, isMoved, type Store } from "#db/engine/store.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import type { IsLeaving, OwnRows } from "#db/own-rows.ts";
import { listOwners } from "#db/users/users.ts";
import {
  deleteHomeBackup,
  findHome,
  findHomeBackup,
  type Home,
  type HomeBackupRow,
  insertHomeBackup,
  listAbandonedHomeBackups,
  listDueHomes,
  listFetchedNow,
  listHomeBackups,
  listHomesWithBackups,
  listLeftoverSnapshots,
  listOpenHomeBackups,
  listUnverifiedHomeBackups,
  updateHomeBackup,
} from "#db/workspaces/home-backups.ts";
import { findSnapshot, type SnapshotRow } from "#db/workspaces/snapshots.ts";
import { HomeBackupError } from "#src/home-backups/error.ts";
import type { HomeBackupStore } from "#src/home-backups/store.ts";
import { isForBuiltIn } from "#src/provisioners/external/tags.ts";
import type { CaptureResult, Homes, SnapshotRef } from "#src/provisioners/homes.ts";
import { ProvisionError } from "#src/provisioners/provisioner.ts";
import type { Chore } from "../runtime/chore.ts";
import type { Directory } from "../runtime/directory.ts";
import { Turns } from "../runtime/turns.ts";
import type { WorkspaceActor } from "../workspace/actor.ts";
import type { Provisioners } from "../workspace/build-runner.ts";
import { chooseOutdated } from "./retention.ts";
import { toFigures, ZERO_FIGURES } from "./status.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How often the newest backup of a workspace is verified. */
const VERIFY_INTERVAL_MS = 7 * DAY_MS;
/** Maximum concurrent operations. Each uses disk, network and CPU. */
const MAX_CONCURRENT = 2;
const CHECK_INTERVAL_MS = 500;
/** Operations that take longer are considered stuck. */
const OPERATION_TIMEOUT_MS = DAY_MS;
const TIMED_OUT = "It took longer than a day.";

export const NOT_CONFIGURED = "Home backups are not set up. Set home_backup_dir or home_backup_s3_bucket.";

export type HomeBackupDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly findOwnRows: () => OwnRows;
  readonly config: Pick<Config, "home_backup_interval" | "home_backup_keep_daily" | "home_backup_keep_weekly">;
  readonly provisioners: Provisioners;
  readonly workspaces: () => Directory<WorkspaceActor>;
  /** Undefined if no location is configured. */
  readonly backups: HomeBackupStore | undefined;
};

/** An operation that may begin now. */
type DueOperation = OwnedWorkspace & { readonly begin: () => void | Promise<void> };
type OwnedWorkspace = { readonly workspace_id: string; readonly owner_id: string; readonly part: number };
type Running = { readonly done: Promise<void>; readonly end: AbortController; readonly part: number };
/** `later`: the operation cannot run now and is retried. */
type Outcome = "done" | "later";

export class HomeBackupKeeper implements Chore {
  readonly #deps: HomeBackupDeps;
  /** Running operations by workspace. */
  readonly #running = new Map<string, Running>();
  readonly #turns = new Turns();
  /** When to retry backups that could not be read or deleted. */
  readonly #postponed = new Map<string, number>();
  #isStopped = false;
  #isRequested = false;
  #hasChecked = false;
  #checking: Promise<void> | undefined;
  #verifying: string | undefined;
  #countedAt = Number.NEGATIVE_INFINITY;
  /** Cached figures of all workspaces, at most a minute old; in a cluster, only the first node computes them. */
  standing = ZERO_FIGURES;
  readonly counts = { made: 0, failed: 0, verified: 0, damaged: 0 };

  constructor(deps: HomeBackupDeps) {
    this.#deps = deps;
  }

  /** Called every few seconds, and when there is work. */
  sweep(): void {
    // Without a location, one check is enough: it marks pending backups as failed.
    if (this.#isStopped || (!this.#deps.backups && this.#hasChecked)) return;
    this.#isRequested = true;
    this.#checking ??= this.#checkUntilQuiet().finally(() => {
      this.#checking = undefined;
      if (this.#isRequested) this.sweep();
    });
  }

  recover(): void {
    this.sweep();
  }

  async whenIdle(): Promise<void> {
    while (this.#checking || this.#running.size > 0) {
      await this.#checking;
      await Promise.all([...this.#running.values()].map(({ done }) => done));
    }
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    for (const { end } of this.#running.values()) end.abort(new Error("the server is stopping"));
    return this.whenIdle();
  }

  /** Stops working on leaving workspaces. Resolves when no operation is running here. */
  async release(isLeaving: IsLeaving): Promise<void> {
    await this.#checking;
    const leaving = [...this.#running.values()].filter(({ part }) => isLeaving(part));
    for (const { end } of leaving) end.abort(new Error("another node has the workspace now"));
    await Promise.all(leaving.map(({ done }) => done));
  }

  /** Creates a provisioner's copy of the files of a backup. Rejects with ProvisionError. */
  async fetch(homes: Homes, ref: SnapshotRef, id: string, signal: AbortSignal): Promise<CaptureResult> {
    const { backups, store } = this.#deps;
    const row = await store.get(findHomeBackup({ id }));
    if (!backups) throw new ProvisionError(NOT_CONFIGURED);
    if (!row) throw new ProvisionError("The backup was deleted.");
    if (row.location !== backups.storage.url) throw new ProvisionError(formatWrongLocation(row, backups));
    try {
      const manifest = await backups.find(row.workspace_id, id);
      return await homes.unpack(ref, { volumes: manifest.volumes, stream: backups.read(manifest, signal) }, signal);
    } catch (error) {
      if (error instanceof HomeBackupError) throw new ProvisionError(error.message);
      throw error;
    }
  }

  async #checkUntilQuiet(): Promise<void> {
    while (this.#isRequested && !this.#isStopped) {
      this.#isRequested = false;
      this.#hasChecked = true;
      await this.#check().catch((error) =>
        log("home-backups").warn("cannot list due home backups: {error}", { error }),
      );
    }
  }

  async #check(): Promise<void> {
    const { store, findOwnRows, backups } = this.#deps;
    const own = findOwnRows();
    for (const { id, workspace_id } of await store.scan(listLeftoverSnapshots({}, own)))
      await this.#deleteSnapshot(workspace_id, id);
    const open = (await store.scan(listOpenHomeBackups({}, own))).filter(({ id }) => !this.#isPostponed(id));
    if (backups) await this.#beginDue(backups, open, own);
    else {
      for (const { id, part, status } of open) {
        if (status !== "creating") continue;
        await store.commit([updateHomeBackup(id, { status: "failed", error: NOT_CONFIGURED })], { of: part });
      }
    }
    if (own.has("deployment")) await this.#updateFigures();
  }

  async #beginDue(
    backups: HomeBackupStore,
    open: readonly (OwnedWorkspace & { readonly id: string })[],
    own: OwnRows,
  ): Promise<void> {
    const { store, clock, config } = this.#deps;
    const abandoned_at = clock.now() - Math.max(DAY_MS, config.home_backup_keep_weekly * 7 * DAY_MS);
    for (const { id, part } of await store.scan(listAbandonedHomeBackups({ before: abandoned_at }, own))) {
      await store.commit([updateHomeBackup(id, { status: "deleting" })], { of: part });
    }
    if (this.#running.size >= MAX_CONCURRENT) return;
    const waiting: DueOperation[] = open.map((row) =>
      toDue(row, () => this.#startOperation(row, (signal) => this.#resumeOperation(backups, row.id, signal))),
    );
    waiting.push(...(await this.#findUnverified(backups, own)), ...(await this.#findScheduled(backups, own)));
    for (const one of this.#turns.order(waiting)) {
      if (this.#running.size >= MAX_CONCURRENT) return;
      if (!this.#turns.isBusy(one.owner_id) && !this.#running.has(one.workspace_id)) await one.begin();
    }
  }

  /** Returns the next backup to verify, if none is being verified. It comes before new backups of the same person. */
  async #findUnverified(backups: HomeBackupStore, own: OwnRows): Promise<DueOperation[]> {
    if (this.#verifying !== undefined) return [];
    const before = this.#deps.clock.now() - VERIFY_INTERVAL_MS;
    const unverified = listUnverifiedHomeBackups({ location: backups.storage.url, before }, own);
    const row = (await this.#deps.store.scan(unverified)).find(
      ({ id, owner_id }) => !this.#isPostponed(id) && !this.#turns.isBusy(owner_id),
    );
    if (!row) return [];
    const begin = (): void => {
      this.#verifying = row.id;
      this.#startOperation(row, (signal) => this.#verify(backups, row.id, signal));
    };
    return [toDue(row, begin)];
  }

  async #findScheduled(backups: HomeBackupStore, own: OwnRows): Promise<DueOperation[]> {
    const { store, clock, config } = this.#deps;
    const { home_backup_interval: interval } = config;
    if (interval === undefined) return [];
    const now = clock.now();
    const limits = { since: now - interval, tried_since: now - Math.min(interval, HOUR_MS) };
    const homes = await store.scan(listDueHomes({ location: backups.storage.url, ...limits }, own));
    return homes
      .filter(({ tags }) => isForBuiltIn(tags))
      .map(({ id: workspace_id, owner_id, part }) => {
        const workspace = { workspace_id, owner_id, part };
        return toDue(workspace, () => this.#createScheduled(backups, workspace));
      });
  }

  #isPostponed(id: string): boolean {
    return this.#deps.clock.now() < (this.#postponed.get(id) ?? 0);
  }

  async #updateFigures(): Promise<void> {
    const { store, clock, config } = this.#deps;
    const now = clock.now();
    if (now < this.#countedAt + MINUTE_MS) return;
    this.#countedAt = now;
    this.standing = toFigures(await store.scan(listHomesWithBackups({})), config.home_backup_interval, now);
  }

  /** Deletes a snapshot after its files were copied. */
  async #deleteSnapshot(workspace_id: string, snapshot_id: string): Promise<void> {
    try {
      await this.#deps.workspaces().ask(workspace_id, "deleteSnapshot", { snapshot_id, by_keeper: true });
    } catch (error) {
      log("home-backups").warn("cannot delete snapshot {snapshot_id}: {error}", { snapshot_id, error });
    }
  }

  /** Stores a pending backup and begins it. */
  async #createScheduled(backups: HomeBackupStore, workspace: OwnedWorkspace): Promise<void> {
    const { store, clock } = this.#deps;
    const { workspace_id, part } = workspace;
    const row = toPendingBackup(workspace_id, backups.storage.url, clock.now());
    try {
      await store.commit([insertHomeBackup(row)], { of: part });
    } catch (error) {
      // Another backup was requested at the same time.
      if (error instanceof CommitError && error.reason === "constraint") return;
      throw error;
    }
    this.#startOperation(workspace, (signal) => this.#resumeOperation(backups, row.id, signal));
  }

  #startOperation(workspace: OwnedWorkspace, work: (signal: AbortSignal) => Promise<Outcome>): void {
    const { workspace_id, part } = workspace;
    if (this.#isStopped) return;
    this.#turns.begin(workspace);
    const end = new AbortController();
    const timer = this.#deps.clock.after(OPERATION_TIMEOUT_MS, () => end.abort(new HomeBackupError(TIMED_OUT)));
    const done = work(end.signal)
      .catch((error): Outcome => {
        if (!end.signal.aborted && !isMoved(error))
          log("home-backups").error("work on {workspace_id} failed: {error}", { workspace_id, error });
        return "later";
      })
      .then((outcome) => {
        timer.cancel();
        this.#running.delete(workspace_id);
        this.#turns.end(workspace);
        if (outcome === "done") this.sweep();
      });
    this.#running.set(workspace_id, { done, end, part });
  }

  async #resumeOperation(backups: HomeBackupStore, id: string, signal: AbortSignal): Promise<Outcome> {
    const row = await this.#deps.store.get(findHomeBackup({ id }));
    const home = row && (await this.#deps.store.get(findHome({ id: row.workspace_id })));
    if (!row || !home) return "done";
    if (row.status === "deleting") return this.#deleteMarked(backups, home, signal);
    if (row.status !== "creating") return "done";
    if (!home.deleted) return this.#createBackup(backups, row, home, signal);
    await this.#commit(home, [deleteHomeBackup(row.id)]);
    return "done";
  }

  async #createBackup(backups: HomeBackupStore, row: HomeBackupRow, home: Home, signal: AbortSignal): Promise<Outcome> {
    const location = backups.storage.url;
    let base: HomeBackupRow | undefined;
    try {
      const homes = this.#requireHomes(home);
      // Fails here, before the workspace is paused, if no engine is usable.
      await backups.chooseEngine();
      const snapshot = await this.#ensureSnapshot(row, home, signal);
      if (snapshot === "later") return "later";
      if (snapshot.status !== "ready") throw new ProvisionError(snapshot.error || "The snapshot was deleted.");
      failpoint("home_backup_snapshot");
      const { store } = this.#deps;
      const existing = await store.all(listHomeBackups({ workspace_id: home.id }));
      const newest = existing.find(
        (one) => one.status === "ready" && one.location === location && one.engine === "archive",
      );
      // A damaged backup may share chunks with older ones, so after damage the new backup stores all files again.
      base = newest?.error === "" ? newest : undefined;
      const facts = {
        workspace_id: home.id,
        workspace_name: home.name,
        owner_name: home.owner_name,
        provisioner: home.provisioner,
      };
      const ref = { workspace_id: home.id, snapshot_id: row.id };
      const { engine, bytes, added_bytes, created_at } = await homes.pack(ref, signal, ({ volumes, stream }) =>
        backups.write({ ...facts, id: row.id, volumes, stream, created_at: snapshot.created_at }, base?.id, signal),
      );
      const ready = { status: "ready", engine, bytes, added_bytes, created_at, location } as const;
      const failedBefore = existing.filter(({ status }) => status === "failed").map((one) => deleteHomeBackup(one.id));
      await this.#commit(home, [updateHomeBackup(row.id, ready, { expect: 1 }), ...failedBefore]);
      this.counts.made += 1;
    } catch (error) {
      const isTooSlow = signal.reason instanceof HomeBackupError;
      // A stored backup without a row is stored again by the next attempt.
      if ((signal.aborted && !isTooSlow) || error instanceof CommitError) throw error;
      await this.#fail(row, home, isTooSlow ? signal.reason : error);
      // The next backup does not build on this one.
      if (base && error instanceof HomeBackupError && error.isDamage) {
        await this.#commit(home, [updateHomeBackup(base.id, { error: error.message })]);
      }
    }
    await this.#removeOld(backups, home);
    return "done";
  }

  /** Returns the backup's snapshot when it is ready; "later" while the workspace is busy. */
  async #ensureSnapshot(row: HomeBackupRow, home: Home, signal: AbortSignal): Promise<SnapshotRow | "later"> {
    const { store, clock } = this.#deps;
    const loadSnapshot = () => store.get(findSnapshot({ id: row.id }));
    let found = await loadSnapshot();
    if (found?.status === "deleting") return "later";
    if (!found) {
      const { provisioner, owner_id: created_by } = home;
      const base = { name: "", reason: "backup", created_by, provisioner } as const;
      try {
        await this.#deps.workspaces().ask(home.id, "createSnapshot", { id: row.id, ...base });
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        // Waits for the end of another build or snapshot.
        if (error.kind === "conflict" || error.kind === "overloaded") return "later";
        throw new ProvisionError(error.message);
      }
    }
    for (;;) {
      found = await loadSnapshot();
      if (!found) throw new ProvisionError("The snapshot was deleted.");
      if (found.status !== "creating") return found;
      await pause(clock, CHECK_INTERVAL_MS, signal);
      signal.throwIfAborted();
    }
  }

  async #fail(row: HomeBackupRow, home: Home, error: unknown): Promise<void> {
    const { store, clock } = this.#deps;
    this.counts.failed += 1;
    const message = toErrorMessage(error);
    log("home-backups").error("the backup of {workspace} failed: {error}", { workspace: home.name, error: message });
    const existing = await store.all(listHomeBackups({ workspace_id: home.id }));
    const failedBefore = existing.filter(({ status, id }) => status === "failed" && id !== row.id);
    await this.#commit(home, [
      updateHomeBackup(row.id, { status: "failed", error: message, created_at: clock.now() }, { expect: 1 }),
      ...failedBefore.map(({ id }) => deleteHomeBackup(id)),
      ...(await this.#buildNotices(home, "failed", message)),
    ]);
  }

  /** Marks backups that exceed the retention for deletion. */
  async #removeOld(backups: HomeBackupStore, home: Home): Promise<void> {
    const { store, config } = this.#deps;
    const { home_backup_keep_daily: daily, home_backup_keep_weekly: weekly } = config;
    const existing = await store.all(listHomeBackups({ workspace_id: home.id }));
    const current = existing.filter(({ status, location }) => status === "ready" && location === backups.storage.url);
    const fetched = new Set((await store.all(listFetchedNow({}))).map(({ id }) => id));
    const outdated = chooseOutdated(
      current.map(({ id, created_at, error }) => ({ id, created_at, isDamaged: error !== "" })),
      { daily, weekly },
    ).filter((id) => !fetched.has(id));
    if (outdated.length > 0) {
      await this.#commit(
        home,
        outdated.map((id) => updateHomeBackup(id, { status: "deleting" })),
      );
    }
  }

  /** Deletes all marked backups of a workspace together. */
  async #deleteMarked(backups: HomeBackupStore, home: Home, signal: AbortSignal): Promise<Outcome> {
    const existing = await this.#deps.store.all(listHomeBackups({ workspace_id: home.id }));
    const marked = existing.filter(({ status }) => status === "deleting");
    // A location that is no longer configured is unreachable; only the row is deleted.
    const reachableIds = marked.filter(({ location }) => location === backups.storage.url).map(({ id }) => id);
    try {
      if (reachableIds.length > 0) await backups.remove(home.id, reachableIds, signal);
    } catch (error) {
      if (!(error instanceof HomeBackupError)) throw error;
      for (const { id } of marked) this.#postponed.set(id, this.#deps.clock.now() + HOUR_MS);
      log("home-backups").warn("cannot delete old backups of {workspace} yet: {error}", {
        workspace: home.name,
        error: error.message,
      });
      return "later";
    }
    await this.#commit(
      home,
      marked.map(({ id }) => deleteHomeBackup(id)),
    );
    return "done";
  }

  async #verify(backups: HomeBackupStore, id: string, signal: AbortSignal): Promise<Outcome> {
    const { store, clock } = this.#deps;
    try {
      const row = await store.get(findHomeBackup({ id }));
      const home = row && (await store.get(findHome({ id: row.workspace_id })));
      return row?.status === "ready" && home ? await this.#readBack(backups, id, home, signal) : "done";
    } catch (error) {
      this.#postponed.set(id, clock.now() + HOUR_MS);
      throw error;
    } finally {
      this.#verifying = undefined;
    }
  }

  async #readBack(backups: HomeBackupStore, id: string, home: Home, signal: AbortSignal): Promise<Outcome> {
    const { clock } = this.#deps;
    const workspace = home.name;
    try {
      await backups.verify(home.id, id, signal);
      await this.#commit(home, [updateHomeBackup(id, { verified_at: clock.now() })]);
      this.counts.verified += 1;
      return "done";
    } catch (error) {
      if (signal.aborted || !(error instanceof HomeBackupError)) throw error;
      if (!error.isDamage) {
        this.#postponed.set(id, clock.now() + HOUR_MS);
        log("home-backups").warn("cannot verify a backup of {workspace}: {error}", {
          workspace,
          error: error.message,
        });
        return "later";
      }
      this.counts.damaged += 1;
      log("home-backups").error("a backup of {workspace} is damaged: {error}", { workspace, error: error.message });
      const damage = updateHomeBackup(id, { error: error.message });
      await this.#commit(home, [damage, ...(await this.#buildNotices(home, "is damaged", error.message))]);
      return "done";
    }
  }

  /** Notifies owners of the deployment once a day for each workspace. */
  async #buildNotices(home: Home, what: string, error: string): Promise<Statement[]> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const dedupe = `home_backup:${home.id}:${what}:${Math.floor(now / DAY_MS)}`;
    const values = { workspace: `${home.owner_name}/${home.name}`, what, error };
    const base = {
      now,
      kind: "home_backup_failed",
      values,
      targets: [home.id],
      path: "/admin/backups",
      dedupe,
    } as const;
    return (await store.all(listOwners({}))).map(({ id }) => insertNotification({ ...base, user_id: id }));
  }

  #requireHomes({ provisioner, tags }: Home): Homes {
    const homes = isForBuiltIn(tags) ? this.#deps.provisioners.get(provisioner)?.homes : undefined;
    if (homes) return homes;
    throw new ProvisionError("This server cannot read the files of the workspace.");
  }

  #commit({ part }: Home, batch: readonly Statement[]): Promise<void> {
    return this.#deps.store.commit(batch, { of: part });
  }
}

const toDue = ({ workspace_id, owner_id, part }: OwnedWorkspace, begin: DueOperation["begin"]): DueOperation => ({
  workspace_id,
  owner_id,
  part,
  begin,
});

/** Returns the row of a pending backup. */
export const toPendingBackup = (workspace_id: string, location: string, now: number): HomeBackupRow => ({
  id: uuid(),
  workspace_id,
  status: "creating",
  engine: null,
  location,
  bytes: 0,
  added_bytes: 0,
  error: "",
  created_at: now,
  verified_at: null,
});

const formatWrongLocation = ({ location }: HomeBackupRow, { storage }: HomeBackupStore): string =>
  `The backup is stored in ${location}, but the server is configured to use ${storage.url}.`;

const toErrorMessage = (error: unknown): string => {
  if (error instanceof HomeBackupError || error instanceof ProvisionError) return error.message;
  log("home-backups").error("a backup failed: {error}", { error });
  return "The backup failed because of an internal error.";
};
