// The ledger of running model calls: a call's expected usage is reserved in the commit that lets it begin, and settled in the commit that
// writes its row. A running call renews its reservation; one that is not renewed is considered lost and charged as reserved (rules BU-2,
// BU-5).
import type { Clock, Timer } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { runOutsideRequest } from "#base/network/current-request.ts";
import { type RetryPolicy, retry } from "#base/retry.ts";
import type { CallScope } from "#db/budgets/budgets.ts";
import { deleteOldPeriods, guardPeriod, openPeriod } from "#db/budgets/periods.ts";
import {
  insertReservation,
  type LedgerCall,
  listLostReservations,
  type ReservationRow,
  recordCall,
  release,
  renewReservations,
  type Settlement,
  settle,
} from "#db/chats/reservations.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { PeriodicChore, type PeriodicDeps } from "../../runtime/chore.ts";
import { type Limit, loadLimits, loadUsed, type ReachedLimit } from "./limits.ts";
import { OpenAnswers } from "./open-answers.ts";
import { buildUsedUpNotices, loadWarning } from "./warnings.ts";

type Deps = {
  readonly store: Store;
  readonly clock: Clock;
  /** Called after notifications were written for a user. */
  readonly onNotified: (user_id: string) => void;
};

/** The estimated usage of a call. */
export type UsageEstimate = { readonly micros: number; readonly tokens: number };

/** A call that may begin. `reserved` is absent when no limit applies and the call need not be recorded after a crash. */
export type OpenCall = { readonly reserved: ReservationRow | undefined; readonly limits: readonly Limit[] };

const RENEW_INTERVAL_MS = 60_000;
/** A reservation that was not renewed for this long has missed three renewals, so its call is considered lost. */
const LEASE_MS = 4 * RENEW_INTERVAL_MS;
/**
 * Maximum attempts. An attempt is repeated when budget becomes available between a rejection and the search for the limit that caused it.
 */
const MAX_BEGIN_ATTEMPTS = 5;
/** Old periods are kept for reports on the past year. */
const PERIOD_RETENTION_MS = 400 * 86_400_000;

const MAX_NOTIFIED = 1_000;

/** The store's queue of one person's writes may be full for some seconds. Retries keep the cost of a call from being lost. */
const STORE_RETRY_MS = 250;
const MAX_STORE_ATTEMPTS = 120;

const retryWhileOverloaded: RetryPolicy = (error, failures) =>
  error instanceof CommitError && error.reason === "overloaded" && failures < MAX_STORE_ATTEMPTS
    ? STORE_RETRY_MS
    : undefined;

const NO_USAGE = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_creation_tokens: 0,
  first_byte_ms: null,
  duration_ms: null,
  provider_request_id: "",
  recording_id: "",
} as const;

export class ModelLedger {
  readonly answers: OpenAnswers;
  readonly #deps: Deps;
  /** Reservations of calls running in this process. */
  readonly #open = new Set<string>();
  #renewal: Timer | undefined;
  /** Budgets whose notifications were already written, so that repeated calls write nothing. */
  #notifiedUsedUp = new Set<string>();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.answers = new OpenAnswers(deps.clock);
  }

  /** Begins a call once its reservation is on disk. If a limit is reached, returns the limit and writes nothing. */
  async begin(
    call: LedgerCall,
    estimate: () => UsageEstimate,
    options: { readonly always: boolean },
  ): Promise<OpenCall | ReachedLimit> {
    const { clock } = this.#deps;
    for (let attempt = 0; attempt < MAX_BEGIN_ATTEMPTS; attempt++) {
      const limits = await loadLimits(this.#deps, call);
      if (limits.length === 0 && !options.always) return { reserved: undefined, limits };
      const now = clock.now();
      const { micros, tokens } = estimate();
      const reserved: ReservationRow = {
        id: uuid(),
        ...call,
        reserved_micros: micros,
        reserved_tokens: tokens,
        created_at: now,
        alive_until: now + LEASE_MS,
      };
      const guards = limits.flatMap((limit) => [openPeriod(limit), guardPeriod(limit, limit.limit)]);
      try {
        await this.#commit([...guards, insertReservation(reserved)]);
        this.#open.add(reserved.id);
        this.#scheduleRenewal();
        return { reserved, limits };
      } catch (error) {
        if (!(error instanceof CommitError && error.reason === "stale")) throw error;
      }
      const reached = await this.#findReached(limits);
      if (!reached) continue;
      if (!reached.isReserved) await this.#notifyUsedUp(reached);
      return reached;
    }
    throw new CommitError("stale", "The budgets changed repeatedly while the model call was starting.");
  }

  /** Returns whether a limit in dollars applies to this call. Rejects when the limits cannot be read. */
  async hasDollarLimit(scope: CallScope): Promise<boolean> {
    return (await loadLimits(this.#deps, scope)).some(({ unit }) => unit === "usd");
  }

  /** Returns whether a limit on this call is used up; true if the limits cannot be read. */
  async isStillReached(scope: CallScope): Promise<boolean> {
    try {
      return (await this.findUsedUp(scope)) !== undefined;
    } catch {
      return true;
    }
  }

  /** Returns the used-up limit on this call, if there is one. Rejects when the limits cannot be read. */
  async findUsedUp(scope: CallScope): Promise<ReachedLimit | undefined> {
    const reached = await this.#findReached(await loadLimits(this.#deps, scope));
    return reached?.isReserved === false ? reached : undefined;
  }

  /** Returns a used-up limit, or else one whose remainder is reserved. */
  async #findReached(limits: readonly Limit[]): Promise<ReachedLimit | undefined> {
    let reservedLimit: ReachedLimit | undefined;
    for (const limit of limits) {
      const used = await loadUsed(this.#deps.store, limit);
      if (used.isReached) return { limit, used, isReserved: false };
      if (used.spent + used.reserved >= limit.limit + used.extra) reservedLimit ??= { limit, used, isReserved: true };
    }
    return reservedLimit;
  }

  /** Writes a call with its details into the ledger, and releases its reservation. */
  async end(
    { reserved, limits }: OpenCall,
    call: LedgerCall,
    settlement: Settlement,
    otherWrites: readonly Statement[] = [],
  ): Promise<void> {
    const now = this.#deps.clock.now();
    try {
      const writes = reserved ? settle({ ...reserved, ...call }, settlement, now) : recordCall(call, settlement, now);
      await retry(this.#deps.clock, () => this.#commit([...writes, ...otherWrites]), retryWhileOverloaded);
    } finally {
      // If the write fails, the reservation is no longer renewed and is settled as lost.
      if (reserved) this.#open.delete(reserved.id);
    }
    if (limits.length > 0) await this.#warn(limits);
  }

  /** Releases the reservation of a call that used nothing. If that fails, the reservation expires. */
  async releaseReservation({ reserved }: OpenCall): Promise<void> {
    if (!reserved) return;
    this.#open.delete(reserved.id);
    await this.#commit([release(reserved)]).catch((error) =>
      log("models").warn("could not release a reservation, which will expire: {error}", { error }),
    );
  }

  async #warn(limits: readonly Limit[]): Promise<void> {
    const { store, clock, onNotified } = this.#deps;
    try {
      for (const limit of limits) {
        const warning = await loadWarning(store, limit, clock.now());
        if (!warning) continue;
        await this.#commit(warning.writes);
        for (const user_id of warning.user_ids) onNotified(user_id);
      }
    } catch (error) {
      // Another call has sent the notifications, or the next one will.
      if (!(error instanceof CommitError && error.reason === "stale")) {
        log("models").warn("cannot write a notification that a budget is nearly used up: {error}", { error });
      }
    }
  }

  async #notifyUsedUp(reached: ReachedLimit): Promise<void> {
    const { store, clock, onNotified } = this.#deps;
    const { budget_id, begins_at } = reached.limit;
    const key = `${budget_id} ${begins_at} ${reached.used.extra}`;
    if (this.#notifiedUsedUp.has(key)) return;
    if (this.#notifiedUsedUp.size >= MAX_NOTIFIED) this.#notifiedUsedUp.clear();
    this.#notifiedUsedUp.add(key);
    try {
      const { writes, user_ids } = await buildUsedUpNotices(store, reached, clock.now());
      await this.#commit(writes);
      for (const user_id of user_ids) onNotified(user_id);
    } catch (error) {
      log("models").warn("cannot write a notification that a budget is used up: {error}", { error });
    }
  }

  /**
   * Settles lost calls: all of them when a single server starts, otherwise those whose reservations were not renewed. Deletes old periods.
   */
  async settleLost(options: { readonly all: boolean }): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const lost = await store.all(listLostReservations({ before: options.all ? Number.MAX_SAFE_INTEGER : now }));
    let settled = 0;
    for (const row of lost) {
      if (this.#open.has(row.id)) continue;
      const settlement: Settlement = {
        ...NO_USAGE,
        outcome: "lost",
        cost_micros: row.reserved_micros,
        output_tokens: row.reserved_tokens,
        is_estimated: true,
      };
      try {
        await this.#commit(settle(row, settlement, now));
        settled += 1;
      } catch (error) {
        // The call has ended after all, or another node has settled it.
        if (!(error instanceof CommitError && error.reason === "stale")) throw error;
      }
    }
    if (settled > 0) log("models").warn("charged {count} interrupted model calls as reserved", { count: settled });
    await this.#commit([deleteOldPeriods(now - PERIOD_RETENTION_MS)]);
  }

  /** Stops renewing, and settles the calls whose callers have left. */
  async stop(): Promise<void> {
    this.#renewal?.cancel();
    this.#renewal = undefined;
    await this.answers.stop();
  }

  #scheduleRenewal(): void {
    this.#renewal ??= this.#deps.clock.after(RENEW_INTERVAL_MS, () => {
      this.#renewal = undefined;
      void this.#renew();
    });
  }

  async #renew(): Promise<void> {
    if (this.#open.size === 0) return;
    this.#scheduleRenewal();
    try {
      await this.#commit([renewReservations([...this.#open], this.#deps.clock.now() + LEASE_MS)]);
    } catch (error) {
      log("models").warn("cannot renew the reservations of running model calls: {error}", { error });
    }
  }

  /** Detached from the request, because a call outlives it. */
  #commit(batch: readonly Statement[]): Promise<void> {
    return runOutsideRequest(() => this.#deps.store.commit(batch));
  }
}

type UpkeepDeps = Pick<PeriodicDeps, "clock"> & { readonly ledger: ModelLedger };

/** Periodically settles lost calls. */
export const ledgerUpkeep = ({ ledger, clock }: UpkeepDeps): PeriodicChore =>
  new PeriodicChore({
    clock,
    every_ms: RENEW_INTERVAL_MS,
    work: () => ledger.settleLost({ all: false }),
    failed: (error) => log("models").warn("cannot settle lost model calls: {error}", { error }),
  });
