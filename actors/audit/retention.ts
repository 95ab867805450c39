// Lets entries of the audit log go in their time, kind by kind and in slices that keep nobody waiting (rule AU-14). Nothing else deletes
// entries.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Store } from "#db/engine/store.ts";
import { deleteOldAudit, findOldAudit } from "#db/reports/audit/search.ts";
import { daysKept, readAuditRetention } from "#db/reports/audit/settings.ts";
import { AUDIT_ACTIONS, RESOURCE_TYPES } from "#schema/audit.ts";
import type { Chore } from "../chat/background/upkeep.ts";

const EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;

type Deps = { readonly store: Store; readonly clock: Pick<Clock, "now"> };

export class AuditRetentionChore implements Chore {
  readonly #parts: Deps;
  #last: number;
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(parts: Deps) {
    this.#parts = parts;
    this.#last = parts.clock.now();
  }

  sweep(): void {
    const now = this.#parts.clock.now();
    if (this.#isStopped || now - this.#last < EVERY_MS) return;
    this.#last = now;
    this.#running = this.#running.then(() => this.#run(now));
  }

  async idle(): Promise<void> {
    await this.#running;
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return this.idle();
  }

  async #run(now: number): Promise<void> {
    const { store } = this.#parts;
    try {
      const retention = await readAuditRetention(store);
      for (const resource_type of RESOURCE_TYPES) {
        for (const action of AUDIT_ACTIONS) {
          const days = daysKept(retention, resource_type, action);
          if (days === 0) continue;
          const old = { resource_type, action, before: now - days * DAY_MS };
          while (!this.#isStopped && (await store.get(findOldAudit(old)))) await store.commit([deleteOldAudit(old)]);
        }
      }
    } catch (error) {
      log("audit").warn("old entries were not let go: {error}", { error });
    }
  }
}
