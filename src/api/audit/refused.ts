// Tells in the audit log of changes that were refused: who tried to do what to a thing there is (rules AU-16 to AU-19). The entry is
// written after the answer, which neither waits for it nor fails with it; so much a minute for each caller, so that nobody can fill a disk.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { besideRequest } from "#base/network/request-part.ts";
import { type OriginOf, originNow } from "#base/origin.ts";
import type { Store } from "#db/engine/store.ts";
import { auditRefused } from "#domain/audit/refused.ts";
import { Throttle } from "#domain/users/throttle.ts";
import type { Asked, AuditTarget } from "./targets.ts";

/** Entries a minute for one caller. */
const EACH = 60;
/** Entries that wait to be written. */
const WAITING = 1_000;

/** Nobody asked, nothing of ours was asked for, or it was too much or too often: none of it says what someone tried to change. */
const UNAUDITED = new Set([401, 405, 406, 408, 413, 415, 421, 426, 429]);

const bodies = new WeakMap<Request, unknown>();

/** Keeps what was sent to the few operations where it says what would have been done; gone with the request. */
export const rememberBody = (request: Request, body: unknown): void => void bodies.set(request, body);

/** What a request was about to change. */
export type Attempt = { readonly target: AuditTarget; readonly params: Readonly<Record<string, string>> };

type Refused = {
  readonly target: AuditTarget;
  readonly asked: Asked;
  readonly origin: OriginOf;
  readonly status_code: number;
  readonly now: number;
};

export class RefusedChanges {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #counts: Throttle;
  #waiting = 0;
  #isFull = false;
  #last: Promise<void> = Promise.resolve();

  constructor({ store, clock }: { store: Store; clock: Clock }) {
    this.#store = store;
    this.#clock = clock;
    this.#counts = new Throttle(clock, EACH);
  }

  /**
   * Takes note of a request that is answered with this status; returns immediately. `attemptOf` says what the request was about to change,
   * undefined where that leaves no entry.
   */
  note(request: Request, status_code: number, attemptOf: () => Attempt | undefined): void {
    if (status_code < 400 || status_code >= 500 || UNAUDITED.has(status_code)) return;
    const found = attemptOf();
    const origin = found && originNow();
    // Made now: later the connection may be gone, and the address with it.
    const user_id = origin?.().user_id ?? null;
    if (!found || !origin || user_id === null || !this.#hasRoomFor(user_id)) return;
    const asked = { store: this.#store, params: found.params, user_id, body: bodies.get(request) };
    const refused = { target: found.target, asked, origin, status_code, now: this.#clock.now() };
    this.#waiting += 1;
    this.#last = besideRequest(() => this.#last.then(() => this.#write(refused)));
  }

  /** Resolves when everything that was refused until now is on disk, or given up. */
  settled(): Promise<void> {
    return this.#last;
  }

  #hasRoomFor(user_id: string): boolean {
    const tries = this.#counts.add(user_id);
    if (tries > EACH) {
      if (tries === EACH + 1) {
        log("audit").warn("{user_id} was refused {limit} times in a minute; the log tells of no more", {
          user_id,
          limit: EACH,
        });
      }
      return false;
    }
    if (this.#waiting < WAITING) return true;
    if (!this.#isFull)
      log("audit").warn("too many requests were refused at once; the log does not tell of all of them");
    this.#isFull = true;
    return false;
  }

  /** Never rejects. */
  async #write({ target, asked, origin, status_code, now }: Refused): Promise<void> {
    // The answer goes out first: whether the thing is there must not be seen by how long it takes (rule AU-18).
    await new Promise((resolve) => setImmediate(resolve));
    try {
      const thing = await target.find(asked);
      if (!thing) return;
      const { action: given, ...about } = thing;
      const entry = { ...about, now, status_code, action: given ?? target.action };
      await auditRefused(this.#store, origin, entry);
    } catch (error) {
      log("audit").warn("a refused request could not be told of", { error });
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#isFull = false;
    }
  }
}
