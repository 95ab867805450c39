// Base class of all actors: an actor is the only writer of its rows. A message is decided on the state in memory and its writes are
// committed. Only then does the actor announce events, start effects and answer (docs/spec/design.md 3, rules 1 to 3).

import { systemClock } from "#base/clock.ts";
import { notFound } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { type AuditEntry, insertAudit } from "#db/reports/audit/audit.ts";
import { Mailbox, runOutsideMailbox } from "./mailbox.ts";

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
const MAX_RELOADS = 60;
const RELOAD_INTERVAL_MS = 1_000;

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
  #unconfirmed: { readonly before: State | undefined } | undefined;
  #isReloading = false;
  #isDropped = false;

  constructor(id: string, store: Store) {
    this.id = id;
    this.#store = store;
    this.#mailbox = new Mailbox(id);
  }

  /** Reads the state from the store. Resolves to undefined when the entity does not exist; messages are then answered with 404. */
  protected abstract load(): Promise<State | undefined>;

  /** Returns the `part` that is stored with the entity's rows (`CommitOptions`). */
  protected abstract toPart(state: State): number | undefined;

  /** Returns the audit log entries for a message that writes, stored in the same batch. `before` is undefined for a new entity (AU-1). */
  protected buildEntries(_before: State | undefined, _outcome: Outcome<State, unknown>): readonly AuditEntry[] {
    return NO_ENTRIES;
  }

  /** Returns the notifications for a message that writes, stored in the same batch (rule NO-1). */
  protected buildNotices(_before: State | undefined, _outcome: Outcome<State, unknown>): readonly Statement[] {
    return NO_NOTICES;
  }

  /** Called when notifications are on disk. */
  protected onNoticesStored(_state: State): void {}

  /**
   * Called with the stored state after a commit that could not be confirmed: it may or may not have been stored. Everything that the
   * commit would have announced or started must be checked again. `found` is undefined when the entity no longer exists.
   */
  protected onUnconfirmedCommit(_before: State | undefined, _found: State | undefined): void {}

  /** If a message writes rows of agents, returns the ID of their workspace (`about` of `Store.commit`). */
  protected toAffectedWorkspace(_state: State): string | undefined {
    return undefined;
  }

  /** Returns false while something outside the mailbox, such as a running effect or a live socket, belongs to this instance. */
  protected canUnload(): boolean {
    return true;
  }

  /** Returns true while the state contains something that is not stored and that another instance would lack. */
  protected hasUnstoredState(_state: State): boolean {
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
      const state = this.#unconfirmed || this.#state === undefined ? await this.#ensureLoaded() : this.#state;
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

  /** The `part` of the state in memory; undefined without state. */
  get currentPart(): number | undefined {
    return this.#state && this.toPart(this.#state);
  }

  /** Whether the instance can be dropped without losing anything. */
  get canDrop(): boolean {
    return this.#mailbox.isIdle && !this.#isReloading && this.canUnload();
  }

  /** Whether the instance can be dropped early, because another instance could load all of its state. */
  get canEvict(): boolean {
    return this.canDrop && !(this.#state && this.hasUnstoredState(this.#state));
  }

  /** Called when the instance gets no more messages. Another instance takes over its remaining work. */
  onDropped(): void {
    this.#isDropped = true;
  }

  /** Resolves when every waiting message has been answered. */
  whenDrained(): Promise<void> {
    return this.#mailbox.whenDrained();
  }

  /** Whether no message is waiting or being handled. */
  get isIdle(): boolean {
    return this.#mailbox.isIdle;
  }

  async #ensureLoaded(): Promise<State | undefined> {
    this.#state ??= await this.load();
    const [found, unconfirmed] = [this.#state, this.#unconfirmed];
    this.#unconfirmed = undefined;
    if (unconfirmed) runOutsideMailbox(() => this.onUnconfirmedCommit(unconfirmed.before, found));
    return found;
  }

  /**
   * Reloads after an unconfirmed commit without waiting for the next message. Otherwise a stored build might never be queued, and
   * followers might miss stored lines.
   */
  async #reloadUntilConfirmed(): Promise<void> {
    if (this.#isReloading) return;
    this.#isReloading = true;
    for (let reloadCount = 0; reloadCount < MAX_RELOADS && this.#unconfirmed && !this.#isDropped; reloadCount++) {
      if (reloadCount > 0) await pause(systemClock, RELOAD_INTERVAL_MS);
      await this.#mailbox
        .run(async () => this.#unconfirmed && !this.#isDropped && this.#ensureLoaded())
        .catch((error) => log("actors").warn("cannot reload {id}: {error}", { id: this.id, error }));
    }
    this.#isReloading = false;
  }

  async #commit(outcome: Outcome<State, unknown>): Promise<void> {
    if (outcome.writes && outcome.writes.length > 0) {
      const entries = this.buildEntries(this.#state, outcome);
      const notices = this.buildNotices(this.#state, outcome);
      try {
        const added = [...entries.map(insertAudit), ...notices];
        const writes = added.length === 0 ? outcome.writes : [...outcome.writes, ...added];
        const { state } = outcome;
        await this.#store.commit(writes, { about: this.toAffectedWorkspace(state), of: this.toPart(state) });
      } catch (error) {
        if (error instanceof CommitError && error.reason === "unknown") {
          this.#unconfirmed ??= { before: this.#state };
          runOutsideMailbox(() => void this.#reloadUntilConfirmed());
        }
        this.#state = undefined;
        throw error;
      }
      if (notices.length > 0) runOutsideMailbox(() => this.onNoticesStored(outcome.state));
    }
    this.#state = outcome.gone ? undefined : outcome.state;
    if (!outcome.after) return;
    runOutsideMailbox(outcome.after);
    failpoint("after_publish");
  }
}

const NO_ENTRIES: readonly AuditEntry[] = [];
const NO_NOTICES: readonly Statement[] = [];
