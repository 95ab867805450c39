// Base class of all actors: an actor is the only writer of its rows. A message is decided on the state in memory, its writes are committed,
// and only then are events announced, effects started and answers sent (docs/spec/design.md 3, rules 1 to 3).

import { systemClock } from "#base/clock.ts";
import { notFound } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { type AuditEntry, audited } from "#db/reports/audit/audit.ts";
import { Mailbox, outsideTurn } from "./mailbox.ts";

/** The result of a decision. `after` announces events and starts effects; it runs once the writes are on disk. */
export type Outcome<State, Reply> = {
  readonly state: State;
  /** The entity was deleted. The next message finds nothing. */
  readonly gone?: boolean;
  readonly writes?: readonly Statement[];
  readonly after?: () => void;
  readonly reply: Reply;
};

/** How often, and at what interval, the stored state is read after a commit that could not be confirmed. */
const LOOKS = 60;
const LOOK_AGAIN_MS = 1_000;

/**
 * Subclasses offer messages as public methods that take one plain JSON argument and return a promise. Each calls `handle` or `handleCreate`
 * once. State is replaced, never mutated.
 */
export abstract class Actor<State> {
  readonly id: string;
  readonly #store: Store;
  readonly #mailbox: Mailbox;
  #state: State | undefined;
  /** Set after a commit that could not be confirmed and was not announced; `before` is the state before it. */
  #unsure: { readonly before: State | undefined } | undefined;
  #isLooking = false;
  #isLetGo = false;

  constructor(id: string, store: Store) {
    this.id = id;
    this.#store = store;
    this.#mailbox = new Mailbox(id);
  }

  /** Reads the state from the store; undefined when the entity does not exist (answered 404). */
  protected abstract load(): Promise<State | undefined>;

  /** Returns the actor's shard (src/base/parts.ts). Only the node that owns the shard writes for it. */
  protected abstract part(state: State): number | undefined;

  /** Returns the audit log entries for a message that writes, stored in the same batch. `before` is undefined for a new entity (AU-1). */
  protected entries(_before: State | undefined, _outcome: Outcome<State, unknown>): readonly AuditEntry[] {
    return NONE;
  }

  /** Returns the notifications for a message that writes, stored in the same batch (rule NO-1). */
  protected notices(_before: State | undefined, _outcome: Outcome<State, unknown>): readonly Statement[] {
    return NO_NOTICES;
  }

  /** Called when notifications are on disk. */
  protected noticed(_state: State): void {}

  /**
   * Called after a commit that could not be confirmed, and may not have been stored, with the state that is stored now. Everything that the
   * commit would have announced or started must be checked again. `found` is undefined when the entity no longer exists.
   */
  protected unconfirmed(_before: State | undefined, _found: State | undefined): void {}

  /** Returns the one workspace whose agents' rows a message writes, if any (`Store.commit`). */
  protected about(_state: State): string | undefined {
    return undefined;
  }

  /** Returns false while something outside the mailbox, such as a running effect or a live socket, belongs to this instance. */
  protected mayLeave(): boolean {
    return true;
  }

  /** Returns true while the state contains something that is not stored and that another instance would lack. */
  protected knowsMore(_state: State): boolean {
    return false;
  }

  /**
   * Handles one message: loads if needed, decides, commits, announces, answers. `decide` may await only the store. If it throws, nothing
   * changes. If the commit fails, the state in memory is discarded and the next message reloads it.
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

  /** Handles the message that creates the entity, when there is no state yet. */
  protected handleCreate<Reply>(decide: () => Outcome<State, Reply> | Promise<Outcome<State, Reply>>): Promise<Reply> {
    return this.#mailbox.run(async () => {
      const outcome = await decide();
      await this.#commit(outcome);
      return outcome.reply;
    });
  }

  /** The shard of the state in memory; undefined without state. */
  get ofPart(): number | undefined {
    return this.#state && this.part(this.#state);
  }

  /** Whether the instance can be dropped without losing anything. */
  get quiet(): boolean {
    return this.#mailbox.idle && !this.#isLooking && this.mayLeave();
  }

  /** Whether the instance can be dropped early, because another instance could load all of its state. */
  get spare(): boolean {
    return this.quiet && !(this.#state && this.knowsMore(this.#state));
  }

  /** Called when the instance gets no more messages. Another instance takes over its remaining work. */
  letGo(): void {
    this.#isLetGo = true;
  }

  /** Resolves when every waiting message has been answered. */
  drained(): Promise<void> {
    return this.#mailbox.drained();
  }

  /** Whether no message is waiting or being handled. */
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

  /**
   * Reloads after an unconfirmed commit without waiting for a message, which may never come: a stored build would not be queued, and
   * followers would miss stored lines.
   */
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
