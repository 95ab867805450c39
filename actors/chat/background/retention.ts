// Applies chat retention (facts/chats 4.16): archives inactive chats, deletes chats that have been archived long enough, and deletes old
// recorded model calls. Goes through each chat's actor, one at a time; 0 days means never (rules RT-1 to RT-5).

import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { listExpiredChats, listInactiveChats } from "#db/chats/purge.ts";
import { deleteOldRunSlice, findOldRun } from "#db/chats/runs.ts";
import { type ChatSettings, readChatSetting } from "#db/chats/settings.ts";
import type { Store } from "#db/engine/store.ts";
import { type Chore, PeriodicChore } from "../../runtime/chore.ts";
import type { Directory } from "../../runtime/directory.ts";
import type { ChatActor } from "../actor.ts";

const RUN_INTERVAL_MS = 600_000;
const DAY_MS = 86_400_000;

type Deps = {
  readonly store: Store;
  readonly clock: Pick<Clock, "now">;
  readonly chats: () => Directory<ChatActor>;
};

export const chatRetention = (deps: Deps): Chore =>
  new PeriodicChore({
    clock: deps.clock,
    every_ms: RUN_INTERVAL_MS,
    work: (now, isStopped) => new Retention(deps, isStopped).run(now),
    failed: (error) => log("chats").warn("could not archive or delete old chats: {error}", { error }),
  });

/** One run of the retention. */
class Retention {
  readonly #deps: Deps;
  readonly #isStopped: () => boolean;

  constructor(deps: Deps, isStopped: () => boolean) {
    this.#deps = deps;
    this.#isStopped = isStopped;
  }

  async run(now: number): Promise<void> {
    await this.#archive(await this.#since(now, "auto_archive_days"));
    await this.#purge(await this.#since(now, "retention_days"));
    await this.#deleteRuns(await this.#since(now, "debug_retention_days"));
  }

  /** Returns the time before which items expire, or undefined for never. */
  async #since(now: number, setting: RetentionSetting): Promise<number | undefined> {
    const days = await readChatSetting(this.#deps.store, setting);
    return days === 0 ? undefined : now - days * DAY_MS;
  }

  async #archive(before: number | undefined): Promise<void> {
    if (before === undefined) return;
    const { store, chats } = this.#deps;
    let count = 0;
    for (const { id } of await store.scan(listInactiveChats({ before }))) {
      if (this.#isStopped()) return;
      const done = await this.#tryChat(id, () =>
        chats().ask(id, "change", { archived: true, silent_since: before, patch: {}, pin: null }),
      );
      if (done) count += 1;
    }
    if (count > 0) log("chats").info("archived {count} inactive chats", { count });
  }

  async #purge(before: number | undefined): Promise<void> {
    if (before === undefined) return;
    const { store, chats } = this.#deps;
    let count = 0;
    for (const { id } of await store.scan(listExpiredChats({ before }))) {
      if (this.#isStopped()) return;
      if (await this.#tryChat(id, () => chats().ask(id, "purge", { before }))) count += 1;
    }
    if (count > 0) log("chats").info("deleted {count} archived chats", { count });
  }

  async #deleteRuns(before: number | undefined): Promise<void> {
    if (before === undefined) return;
    const { store } = this.#deps;
    while (!this.#isStopped() && (await store.get(findOldRun({ before }))))
      await store.commit(deleteOldRunSlice(before), { of: "deployment" });
  }

  /** Returns false when the chat has changed since it was listed. A chat that cannot be archived or deleted does not block the others. */
  async #tryChat(id: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      return (await work()) !== "stale";
    } catch (error) {
      const hasChanged = error instanceof AppError && (error.kind === "conflict" || error.kind === "not_found");
      if (!hasChanged) log("chats").warn("could not archive or delete chat {id}: {error}", { id, error });
      return false;
    }
  }
}

type RetentionSetting = Extract<keyof ChatSettings, "auto_archive_days" | "retention_days" | "debug_retention_days">;
