// Builds repository images in advance: for the newest commit of the default branch, after a push, on a schedule, or on request. Each
// pending check is a timer row, so it is repeated after a crash. Existing images are found by their key (rules IB-4 to IB-9).
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import type { Store } from "#db/engine/store.ts";
import { clearTimer, moveTimer, setTimer, type Timer } from "#db/engine/timers.ts";
import {
  findRepositoryPrebuild,
  listRepositoryPrebuilds,
  type RepositoryPrebuildRow,
  updateRepositoryPrebuild,
} from "#db/templates/repository-prebuilds.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import type { Events } from "../runtime/events.ts";
import { CheckQueue } from "../runtime/serialized-checks.ts";
import type { Service } from "../runtime/service.ts";
import { nextCheckTime, withBuilt } from "./retention.ts";

/** The kind and name of the keeper's timers. */
export const IMAGE_PREBUILD = "image_prebuild";
export const IMAGE_CHECK_TIMER = "look";

/** After a crash, an interrupted check is repeated after this time. */
const INTERRUPTED_RETRY_MS = 60_000;
/** Timeout of a build. */
const BUILD_TIMEOUT_MS = 60 * 60_000;
/** Maximum number of log lines, and of characters in each. */
const MAX_LINES = 200;
const MAX_LINE_CHARS = 500;

export type ImagePrebuildDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  /** Returns the newest commit of the default branch, read as the person who added the prebuild. Throws AppError. */
  readonly plan: (row: RepositoryPrebuildRow) => Promise<RepositoryPlan>;
  /** Builds or finds the images of a plan and returns their names. Rejects with an Error for people. */
  readonly build: (
    plan: RepositoryPlan,
    owner_id: string,
    report: Report,
    signal: AbortSignal,
  ) => Promise<readonly string[]>;
  /** Deletes images that no container uses. */
  readonly remove: (names: readonly string[], signal: AbortSignal) => Promise<void>;
};

export class ImagePrebuildKeeper implements Service {
  readonly runsOn = "one node";
  readonly timers = { [IMAGE_PREBUILD]: ({ actor_id, due }: Timer) => this.onTimer(actor_id, due) };
  readonly #deps: ImagePrebuildDeps;
  /** When the next timer of each prebuild is due. */
  readonly #timerDue = new Map<string, number>();
  readonly #checking = new Set<string>();
  readonly #checks = new CheckQueue(
    (id) => this.#runSerially(() => this.#checkOnce(id)),
    (id, error) => {
      if (!this.#ended.signal.aborted)
        log("prebuilds").error("cannot check repository prebuild {id}: {error}", { id, error });
      return "later";
    },
  );
  #ended = new AbortController();
  #lastBuild: Promise<void> = Promise.resolve();

  constructor(deps: ImagePrebuildDeps) {
    this.#deps = deps;
  }

  /**
   * Handles the timer that was due at `due`. The check continues in the background. Resolves once a timer is stored that repeats it after
   * a crash.
   */
  async onTimer(id: string, due?: number): Promise<void> {
    const { store, clock } = this.#deps;
    const isRunning = due !== undefined && due === this.#timerDue.get(id) && this.#checking.has(id);
    const due_again = clock.now() + INTERRUPTED_RETRY_MS;
    this.#timerDue.set(id, due_again);
    await store.commit([setTimer(IMAGE_PREBUILD, id, IMAGE_CHECK_TIMER, due_again)], { of: "deployment" });
    if (isRunning) return;
    this.#checking.add(id);
    void this.#checks.check(id).finally(() => this.#checking.delete(id));
  }

  /** Continues interrupted builds, without waiting for timers. */
  async recover(): Promise<void> {
    const rows = await this.#deps.store.all(listRepositoryPrebuilds());
    for (const { prebuild } of rows) if (prebuild.status === "building") await this.onTimer(prebuild.id);
  }

  /** Stops all builds because another node continues them. */
  async release(): Promise<void> {
    this.#ended.abort(new Error("another node continues the builds"));
    await this.#checks.whenSettled();
    this.#ended = new AbortController();
  }

  async stop(): Promise<void> {
    this.#ended.abort(new Error("the server stops"));
    await this.#checks.stop();
  }

  /** Runs one check at a time, because image builds share the engine with people's workspaces. */
  async #runSerially(check: () => Promise<void>): Promise<void> {
    const before = this.#lastBuild;
    const work = before.then(check);
    this.#lastBuild = work.catch(() => {});
    await work;
  }

  async #checkOnce(id: string): Promise<void> {
    const { store, clock } = this.#deps;
    this.#ended.signal.throwIfAborted();
    const row = await store.get(findRepositoryPrebuild({ id }));
    if (!row) return store.commit([clearTimer(IMAGE_PREBUILD, id, IMAGE_CHECK_TIMER)], { of: "deployment" });
    await this.#write(row, { status: "building" });
    failpoint("prebuild_begun");
    const lines: string[] = [];
    const outcome = await this.#build(row, lines);
    this.#ended.signal.throwIfAborted();
    const now = clock.now();
    const tries = outcome.status === "ready" ? 0 : row.tries + 1;
    const due = nextCheckTime({ interval_hours: row.interval_hours, tries }, now);
    const result = {
      ...outcome,
      tries,
      log: lines.slice(-MAX_LINES).join("\n"),
      built_at: now,
      next_at: due ?? null,
    };
    await store.commit(
      [
        updateRepositoryPrebuild(id, result),
        moveTimer(IMAGE_PREBUILD, id, IMAGE_CHECK_TIMER, { due, seen: this.#timerDue.get(id) ?? now }),
      ],
      { of: "deployment" },
    );
  }

  async #build(row: RepositoryPrebuildRow, lines: string[]): Promise<Partial<RepositoryPrebuildRow>> {
    const { clock, plan: loadPlan, build, remove } = this.#deps;
    const abort = new AbortController();
    const timeoutError = new Error(`The build took longer than ${BUILD_TIMEOUT_MS / 60_000} minutes.`);
    const timer = clock.after(BUILD_TIMEOUT_MS, () => abort.abort(timeoutError));
    const signal = AbortSignal.any([this.#ended.signal, abort.signal]);
    const unwatch = this.#watchRemoval(row, () => abort.abort(new Error("The prebuild was removed.")));
    const report: Report = {
      log: (_level, _stage, line) => {
        lines.push(line.slice(0, MAX_LINE_CHARS));
        if (lines.length > 2 * MAX_LINES) lines.splice(0, MAX_LINES);
      },
      timing: () => {},
    };
    try {
      const plan = await unlessAborted(signal, loadPlan(row));
      report.log("info", "", `Building the image for commit ${plan.commit.slice(0, 12)}.`);
      const names = await build(plan, row.owner_id, report, signal);
      failpoint("prebuild_built");
      const { images, removed } = withBuilt(row.images, { commit: plan.commit, names }, row.keep);
      await remove(removed, signal);
      failpoint("prebuild_pruned");
      return { status: "ready", error: "", commit: plan.commit, images };
    } catch (error) {
      this.#ended.signal.throwIfAborted();
      const message =
        error instanceof AppError ? [error.message, error.detail].filter(Boolean).join(" ") : (error as Error).message;
      lines.push(message.slice(0, MAX_LINE_CHARS));
      return { status: "failed", error: message.slice(0, 2_000) };
    } finally {
      timer.cancel();
      unwatch();
    }
  }

  /** Calls `end` once the prebuild or its organization is removed. Returns a function that stops watching. */
  #watchRemoval({ id, organization_id }: RepositoryPrebuildRow, end: () => void): () => void {
    const { store, topics } = this.#deps;
    const check = (): void => {
      store.get(findRepositoryPrebuild({ id })).then(
        (found) => found ?? end(),
        (error) => log("prebuilds").warn("cannot read repository prebuild {id}: {error}", { id, error }),
      );
    };
    const subscriptions = [
      topics.subscribe("access_changed", id, check),
      topics.subscribe("access_changed", organization_id, check),
      topics.subscribe("missed", "", check),
    ];
    // The prebuild may have been removed before the subscription.
    check();
    return () => {
      for (const unsubscribe of subscriptions) unsubscribe();
    };
  }

  #write({ id }: RepositoryPrebuildRow, patch: Partial<RepositoryPrebuildRow>): Promise<void> {
    return this.#deps.store.commit([updateRepositoryPrebuild(id, patch)], { of: "deployment" });
  }
}

const unlessAborted = <T>(signal: AbortSignal, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
