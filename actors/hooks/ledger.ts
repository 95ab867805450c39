// The ledger of lifecycle hooks: stores each dispatch before its decision takes effect, adds denials, changes and failures to the audit
// log, and deletes old rows (rules HK-14 to HK-16).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { runOutsideRequest } from "#base/network/request-part.ts";
import { FIRST_PART, type Parts } from "#base/parts.ts";
import { findChatPlace } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import { deleteOldHookDispatches, findOldHookDispatch, insertHookDispatch } from "#db/hook-dispatches.ts";
import { type AuditEntry, insertAudit } from "#db/reports/audit/audit.ts";
import type { DispatchRecord } from "#src/hooks/hooks.ts";
import type { Chore } from "../runtime/chore.ts";

const RUN_INTERVAL_MS = 600_000;
const DAY_MS = 86_400_000;
/** Maximum rows, regardless of age. */
const MAX_ROWS = 1_000_000;

type Deps = {
  readonly store: Store;
  readonly clock: Pick<Clock, "now">;
  readonly days: number;
  readonly parts?: Parts;
};

export class HookLedger implements Chore {
  readonly #deps: Deps;
  #last: number;
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#last = deps.clock.now();
  }

  /** Resolves when the entry is on disk. */
  async record(entry: DispatchRecord): Promise<void> {
    const { store } = this.#deps;
    const audit = UNAUDITED_RESULTS.has(entry.result) ? undefined : await this.#entry(entry);
    // The consumer's answer is stored even if the request fails.
    const writes = [insertHookDispatch(entry), ...(audit ? [insertAudit(audit)] : [])];
    await runOutsideRequest(() => store.commit(writes));
  }

  sweep(): void {
    const now = this.#deps.clock.now();
    if (this.#shouldStop || now - this.#last < RUN_INTERVAL_MS) return;
    this.#last = now;
    this.#running = this.#running.then(() => this.#deleteOld(now));
  }

  async whenIdle(): Promise<void> {
    await this.#running;
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return this.whenIdle();
  }

  /** In a cluster, only the first node deletes rows. */
  get #shouldStop(): boolean {
    return this.#isStopped || this.#deps.parts?.isFirst === false;
  }

  /** Attributes a chat that does not exist yet, and may never exist, to its owner. */
  async #entry({ id, chat_id, owner_id, event, result, tool_name, mode, source }: DispatchRecord): Promise<AuditEntry> {
    const { store, clock } = this.#deps;
    const place = await store.get(findChatPlace({ id: chat_id }));
    return {
      now: clock.now(),
      action: "write",
      resource_type: "chat",
      resource_id: chat_id,
      user_id: owner_id,
      target: chat_id.slice(0, 8),
      organization_id: place?.organization_id ?? null,
      status_code: toStatus(result, mode),
      additional: {
        hook_event: event,
        hook_result: result,
        hook_dispatch_id: id,
        hook_mode: mode,
        hook_source: source,
        ...(tool_name === null ? {} : { tool_name }),
      },
    };
  }

  async #deleteOld(now: number): Promise<void> {
    const { store, days } = this.#deps;
    try {
      const old = { before: now - days * DAY_MS, most: MAX_ROWS };
      while (!this.#shouldStop && (await store.get(findOldHookDispatch(old)))) {
        await store.commit([deleteOldHookDispatches(old)], undefined, FIRST_PART);
      }
    } catch (error) {
      log("hooks").warn("could not delete old hook dispatches: {error}", { error });
    }
  }
}

/** Results without an effect, which appear only in the ledger. */
const UNAUDITED_RESULTS: ReadonlySet<string> = new Set(["none", "allow", "cancelled"]);

/** Returns the status that a request would have been answered with. Dispatches in observe mode have no effect. */
const toStatus = (result: DispatchRecord["result"], mode: DispatchRecord["mode"]): number => {
  if (mode === "observe" || result === "rewrite") return 200;
  return result === "deny" ? 403 : 502;
};
