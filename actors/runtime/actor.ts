// What every actor is: the only writer of its rows. A message is decided on the state in memory, its writes are committed, and
// only then is anything announced, started or answered (docs/spec/design.md 3, rules 1 to 3).

import { notFound } from "#base/errors.ts";
import { failpoint } from "#base/failpoint.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
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

  /** What people are told of a turn that writes: it goes into the same batch (rule NO-1). */
  protected notices(_before: State | undefined, _outcome: Outcome<State, unknown>): readonly Statement[] {
    return NO_NOTICES;
  }

  /** Notices are on disk now. */
  protected noticed(_state: State): void {}

  /** The one workspace whose agents' rows a turn writes, where that is so (`Store.commit`). */
  protected about(_state: State): string | undefined {
    return undefined;
  }

  /** False while something outside the mailbox still belongs to this instance, such as a running effect or a live socket. */
  protected mayLeave(): boolean {
    return true;
  }

  /**
   * One turn: load if needed, decide, commit, announce, answer. `decide` may await only the store. When it throws, nothing was
   * changed. When the commit fails the state in memory is thrown away and the next message reads it afresh.
   */
  protected handle<Reply>(
    decide: (state: State) => Outcome<State, Reply> | Promise<Outcome<State, Reply>>,
  ): Promise<Reply> {
    return this.#mailbox.run(async () => {
      this.#state ??= await this.load();
      if (this.#state === undefined) throw notFound();
      const outcome = await decide(this.#state);
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

  /** Of which part the state in memory is; undefined while there is none. */
  get ofPart(): number | undefined {
    return this.#state && this.part(this.#state);
  }

  /** True when the instance can be dropped without losing anything. */
  get quiet(): boolean {
    return this.#mailbox.idle && this.mayLeave();
  }

  /** Resolves when every message that was waiting has been answered. */
  drained(): Promise<void> {
    return this.#mailbox.drained();
  }

  /** True when no message waits or is being handled. */
  get rests(): boolean {
    return this.#mailbox.idle;
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
