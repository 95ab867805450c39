// What every actor is: the only writer of its rows. A message is decided on the state in memory, its writes are committed, and
// only then is anything announced, started or answered (docs/spec/design.md 3, rules 1 to 3).

import { systemClock } from "#base/clock.ts";
import { notFound } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { type AuditEntry, audited } from "#db/reports/audit/audit.ts";
import { Mailbox, outsideTurn } from "./mailbox.ts";

/** What a decision came to. `after` announces events and starts effects; it runs once the writes are on disk. */
export type Outcome<State, Reply> = {
  readonly state: State;
  /** The thing is no more: the next message finds nothing. */
  readonly gone?: boolean;
  readonly writes?: readonly Statement[];
  readonly after?: () => void;
  readonly reply: Reply;
};

/** How often it is looked at what a commit has left that could not be confirmed, and how long after one another, while nothing can be read. */
const LOOKS = 60;
const LOOK_AGAIN_MS = 1_000;

/**
 * Subclasses offer messages as public methods that take one plain JSON argument and return a promise. Each calls `handle` or
 * `handleCreate` once.
 * State is replaced, never changed in place.
 */
export abstract class Actor<State> {
  readonly id: string;
  readonly #store: Store;
  readonly #mailbox: Mailbox;
  #state: State | undefined;
  /** A commit was not confirmed, and nobody was told what it has stored; `before` is what was so until then. */
  #unsure: { readonly before: State | undefined } | undefined;
  #isLooking = false;
  #isLetGo = false;

  constructor(id: string, store: Store) {
    this.id = id;
    this.#store = store;
    this.#mailbox = new Mailbox(id);
  }

  /** Reads the state from the store; undefined when there is no such thing (answered 404). */
  protected abstract load(): Promise<State | undefined>;

  /** Of which part it is (src/base/parts.ts): the node that has the part writes for it, and no other. */
  protected abstract part(state: State): number | undefined;

  /** What the audit log tells of a turn that writes: it goes into the same batch. `before` is undefined for what was just made (AU-1). */
  protected entries(_before: State | undefined, _outcome: Outcome<State, unknown>): readonly AuditEntry[] {
    return NONE;
  }

  /** What people are notified of a turn that writes: it goes into the same batch (rule NO-1). */
  protected notices(_before: State | undefined, _outcome: Outcome<State, unknown>): readonly Statement[] {
    return NO_NOTICES;
  }

  /** Notices are on disk now. */
  protected noticed(_state: State): void {}

  /**
   * A commit could not be confirmed. This is what is stored now: anyone who would have been told of the commit, or begun by it, is to look for
   * themselves. It may not have been stored at all. `found` is undefined when the thing is no more.
   */
  protected unconfirmed(_before: State | undefined, _found: State | undefined): void {}

  /** The one workspace whose agents' rows a turn writes, where that is so (`Store.commit`). */
  protected about(_state: State): string | undefined {
    return undefined;
  }

  /** False while something outside the mailbox still belongs to this instance, such as a running effect or a live socket. */
  protected mayLeave(): boolean {
    return true;
  }

  /** True while the state holds something that no store has, and that another instance would have to learn again. */
  protected knowsMore(_state: State): boolean {
    return false;
  }

  /**
   * One turn: load if needed, decide, commit, announce, answer. `decide` may await only the store. When it throws, nothing was
   * changed. When the commit fails the state in memory is thrown away and the next message reads it afresh.
   */
  protected handle<Reply>(
    decide: (state: State) => Outcome<State, Reply> | Promise<Outcome<State, Reply>>,
  ): Promise<Reply> {
    return this.#mailbox.run(async () => {
      const state = this.#unsure || this.#state === undefined ? await this.#loaded() : this.#state;
      if (state === undefined) throw notFound();
      const outcome = await decide(state);
      await this.#commit(outcome);
      return outcome.reply;
    });
  }

  /** The turn that makes the thing: there is no state yet. */
  protected handleCreate<Reply>(decide: () => Outcome<State, Reply> | Promise<Outcome<State, Reply>>): Promise<Reply> {
    return this.#mailbox.run(async () => {
      const outcome = await decide();
      await this.#commit(outcome);
      return outcome.reply;
    });
  }

  /** Of which part the state in memory is; undefined while none exists. */
  get ofPart(): number | undefined {
    return this.#state && this.part(this.#state);
  }

  /** True when the instance can be dropped without losing anything. */
  get quiet(): boolean {
    return this.#mailbox.idle && !this.#isLooking && this.mayLeave();
  }

  /** True when it can be dropped before its time: another instance would know all that it knows. */
  get spare(): boolean {
    return this.quiet && !(this.#state && this.knowsMore(this.#state));
  }

  /** Nobody sends it anything any more: what it has left to do on its own is another instance's. */
  letGo(): void {
    this.#isLetGo = true;
  }

  /** Resolves when every message that was waiting has been answered. */
  drained(): Promise<void> {
    return this.#mailbox.drained();
  }

  /** True when no message waits or is being handled. */
  get rests(): boolean {
    return this.#mailbox.idle;
  }

  async #loaded(): Promise<State | undefined> {
    this.#state ??= await this.load();
    const [found, unsure] = [this.#state, this.#unsure];
    this.#unsure = undefined;
    if (unsure) outsideTurn(() => this.unconfirmed(unsure.before, found));
    return found;
  }

  /** Of what could not be confirmed nobody may ever ask: a build would wait in no queue, a follower for lines that are there. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    for (let looks = 0; looks < LOOKS && this.#unsure && !this.#isLetGo; looks++) {
      if (looks > 0) await pause(systemClock, LOOK_AGAIN_MS);
      await this.#mailbox
        .run(async () => this.#unsure && !this.#isLetGo && this.#loaded())
        .catch((error) => log("actors").warn("{id} cannot be looked at again: {error}", { id: this.id, error }));
    }
    this.#isLooking = false;
  }

  async #commit(outcome: Outcome<State, unknown>): Promise<void> {
    if (outcome.writes && outcome.writes.length > 0) {
      const entries = this.entries(this.#state, outcome);
      const notices = this.notices(this.#state, outcome);
      try {
        const more = [...entries.map(audited), ...notices];
        const writes = more.length === 0 ? outcome.writes : [...outcome.writes, ...more];
        await this.#store.commit(writes, this.about(outcome.state), this.part(outcome.state));
      } catch (error) {
        if (error instanceof CommitError && error.reason === "unknown") {
          this.#unsure ??= { before: this.#state };
          outsideTurn(() => void this.#look());
        }
        this.#state = undefined;
        throw error;
      }
      if (notices.length > 0) outsideTurn(() => this.noticed(outcome.state));
    }
    this.#state = outcome.gone ? undefined : outcome.state;
    if (!outcome.after) return;
    outsideTurn(outcome.after);
    failpoint("after_publish");
  }
}

const NONE: readonly AuditEntry[] = [];
const NO_NOTICES: readonly Statement[] = [];
