// Records rejected changes of existing resources in the audit log: who tried to do what (rules AU-16 to AU-19). The entry is written after
// the response, which does not depend on it. Entries are limited per minute and caller so that a caller cannot fill the disk.

import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { runOutsideRequest } from "#base/network/current-request.ts";
import { type GetOrigin, getCurrentOrigin } from "#base/origin.ts";
import { nextTurn } from "#base/retry.ts";
import type { Store } from "#db/engine/store.ts";
import { auditRefused } from "#domain/audit/rejections.ts";
import { Throttle } from "#domain/users/throttle.ts";
import type { AuditTarget, TargetRequest } from "./targets.ts";

/** Maximum entries per minute and caller. */
const MAX_PER_MINUTE = 60;
/** Maximum entries waiting to be written. */
const MAX_PENDING = 1_000;

/**
 * Rejections with these statuses are not audited: the caller was unknown, the path has no such operation, or the request was too large or
 * too frequent.
 */
const UNAUDITED = new Set([401, 405, 406, 408, 413, 415, 421, 426, 429]);

const bodies = new WeakMap<Request, unknown>();

/** Keeps the body for the few operations whose audit entry needs it. It is released with the request. */
export const rememberBody = (request: Request, body: unknown): void => void bodies.set(request, body);

/** The change that a request attempted. */
export type Attempt = { readonly target: AuditTarget; readonly params: Readonly<Record<string, string>> };

type RejectedChange = {
  readonly target: AuditTarget;
  readonly requested: TargetRequest;
  readonly origin: GetOrigin;
  readonly status_code: number;
  readonly now: number;
};

export class RejectedChanges {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #counts: Throttle;
  #pendingCount = 0;
  #isFull = false;
  #lastWrite: Promise<void> = Promise.resolve();

  constructor({ store, clock }: { store: Store; clock: Clock }) {
    this.#store = store;
    this.#clock = clock;
    this.#counts = new Throttle(clock, MAX_PER_MINUTE);
  }

  /**
   * Records a request that was rejected with this status; returns immediately. `findAttempt` returns the attempted change, or undefined if
   * there is nothing to record.
   */
  note(request: Request, status_code: number, findAttempt: () => Attempt | undefined): void {
    if (status_code < 400 || status_code >= 500 || UNAUDITED.has(status_code)) return;
    const attempt = findAttempt();
    const origin = attempt && getCurrentOrigin();
    // Captured now, because the connection and its address may not be available later.
    const user_id = origin?.().user_id ?? null;
    if (!attempt || !origin || user_id === null || !this.#hasRoomFor(user_id)) return;
    const requested = { store: this.#store, params: attempt.params, user_id, body: bodies.get(request) };
    const rejectedChange = { target: attempt.target, requested, origin, status_code, now: this.#clock.now() };
    this.#pendingCount += 1;
    this.#lastWrite = runOutsideRequest(() => this.#lastWrite.then(() => this.#write(rejectedChange)));
  }

  /** Resolves when every rejection so far has been stored or dropped. */
  flush(): Promise<void> {
    return this.#lastWrite;
  }

  #hasRoomFor(user_id: string): boolean {
    const tryCount = this.#counts.add(user_id);
    if (tryCount > MAX_PER_MINUTE) {
      if (tryCount === MAX_PER_MINUTE + 1) {
        log("audit").warn("{user_id} had {limit} rejected changes in a minute; further ones are not audited", {
          user_id,
          limit: MAX_PER_MINUTE,
        });
      }
      return false;
    }
    if (this.#pendingCount < MAX_PENDING) return true;
    if (!this.#isFull) log("audit").warn("too many rejected changes are pending; some are not audited");
    this.#isFull = true;
    return false;
  }

  /** Never rejects. */
  async #write({ target, requested, origin, status_code, now }: RejectedChange): Promise<void> {
    // Sends the response first, so that its timing does not reveal whether the resource exists (rule AU-18).
    await nextTurn();
    try {
      const targetFields = await target.find(requested);
      if (!targetFields) return;
      const { action: actionFromBody, ...fields } = targetFields;
      const entry = { ...fields, now, status_code, action: actionFromBody ?? target.action };
      await auditRefused(this.#store, origin, entry);
    } catch (error) {
      log("audit").warn("cannot write the audit entry of a rejected change", { error });
    } finally {
      this.#pendingCount -= 1;
      if (this.#pendingCount === 0) this.#isFull = false;
    }
  }
}
