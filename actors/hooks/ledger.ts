// The ledger of lifecycle hooks: stores each dispatch before its decision takes effect, adds denials, changes and failures to the audit
// log, and deletes old rows (rules HK-14 to HK-16).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { runOutsideRequest } from "#base/network/current-request.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import { deleteOldHookDispatches, findOldHookDispatch, insertHookDispatch } from "#db/hook-dispatches.ts";
import { type AuditEntry, insertAudit } from "#db/reports/audit/audit.ts";
import type { DispatchRecord } from "#src/hooks/hooks.ts";
import { PeriodicChore } from "../runtime/chore.ts";

const RUN_INTERVAL_MS = 600_000;
const DAY_MS = 86_400_000;
/** Maximum rows, regardless of age. */
const MAX_ROWS = 1_000_000;

type Deps = {
  readonly store: Store;
  readonly clock: Pick<Clock, "now">;
  readonly days: number;
};

export class HookLedger extends PeriodicChore {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    super({
      clock: deps.clock,
      every_ms: RUN_INTERVAL_MS,
      work: (now, isStopped) => deleteOld(deps, now, isStopped),
      failed: (error) => log("hooks").warn("could not delete old hook dispatches: {error}", { error }),
    });
    this.#deps = deps;
  }

  /** Resolves when the entry is on disk. */
  async record(entry: DispatchRecord): Promise<void> {
    const { store } = this.#deps;
    const audit = UNAUDITED_RESULTS.has(entry.result) ? undefined : await this.#buildEntry(entry);
    // The consumer's answer is stored even if the request fails.
    const writes = [insertHookDispatch(entry), ...(audit ? [insertAudit(audit)] : [])];
    await runOutsideRequest(() => store.commit(writes));
  }

  /** The entry names the chat's owner, because the chat may not exist yet, or may never exist. */
  async #buildEntry({
    id,
    chat_id,
    owner_id,
    event,
    result,
    tool_name,
    mode,
    source,
  }: DispatchRecord): Promise<AuditEntry> {
    const { store, clock } = this.#deps;
    const chat = await store.get(findChatAccessRow({ id: chat_id }));
    return {
      now: clock.now(),
      action: "write",
      resource_type: "chat",
      resource_id: chat_id,
      user_id: owner_id,
      target: chat_id.slice(0, 8),
      organization_id: chat?.organization_id ?? null,
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
}

const deleteOld = async ({ store, days }: Deps, now: number, isStopped: () => boolean): Promise<void> => {
  const old = { before: now - days * DAY_MS, most: MAX_ROWS };
  while (!isStopped() && (await store.get(findOldHookDispatch(old))))
    await store.commit([deleteOldHookDispatches(old)], { of: "deployment" });
};

/** Results without an effect, which appear only in the ledger. */
const UNAUDITED_RESULTS: ReadonlySet<string> = new Set(["none", "allow", "cancelled"]);

/** Returns the status that a request would have been answered with. Dispatches in observe mode have no effect. */
const toStatus = (result: DispatchRecord["result"], mode: DispatchRecord["mode"]): number => {
  if (mode === "observe" || result === "rewrite") return 200;
  return result === "deny" ? 403 : 502;
};
