// Watches a key, or what a key's user may do with one resource, for all connections that depend on it. A revocation costs one read of the
// store however many connections there are, and an idle connection costs one entry in a set. Used only by revocation.ts.
import type { Timer } from "#base/clock.ts";
import { findKeyWithUser } from "#db/users/api-keys.ts";
import { readMemberships } from "#db/users/members.ts";
import type { Access } from "#domain/live-access.ts";
import type { ApiContext } from "../context.ts";
import type { Caller, UserCaller } from "./caller.ts";

type Deps = Pick<ApiContext, "store" | "clock" | "topics">;

/** Called once, with a reason for people. */
export interface Watcher {
  lost(reason: string): void;
}

const SIGNED_OUT = "the session has ended, sign in again";
/** Runtime timers count milliseconds in 31 bits, so a long-lived key is checked once a day. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;

const watches = new WeakMap<Deps["topics"], Map<string, Watch>>();

/** Returns the existing watch, or a new one that starts with its first watcher. */
export const watchFor = (ctx: Deps, caller: Caller, access?: Access): Watch => {
  const key = toKey(caller, access);
  return watches.get(ctx.topics)?.get(key) ?? new Watch(ctx, key, caller, access);
};

const toKey = (caller: Caller, access: Access | undefined): string =>
  caller.kind === "agent" ? `agent ${caller.agent_id}` : `user ${caller.key_id}${access ? ` ${access.key}` : ""}`;

export class Watch {
  readonly #ctx: Deps;
  readonly #key: string;
  readonly #caller: Caller;
  readonly #access: Access | undefined;
  readonly #watchers = new Set<Watcher>();
  #stops: (() => void)[] = [];
  #expiry: Timer | undefined;
  #over = false;

  constructor(ctx: Deps, key: string, caller: Caller, access: Access | undefined) {
    this.#ctx = ctx;
    this.#key = key;
    this.#caller = caller;
    this.#access = access;
  }

  /** Adds a watcher; returns a function that removes it. */
  add(watcher: Watcher): () => void {
    const watch = this.join(watcher);
    return () => watch.leave(watcher);
  }

  /** Adds a watcher and returns its watch, which is a new one if this one has already ended. */
  join(watcher: Watcher): Watch {
    const known = watches.get(this.#ctx.topics)?.get(this.#key);
    if (known && known !== this) return known.join(watcher);
    if (this.#over) return new Watch(this.#ctx, this.#key, this.#caller, this.#access).join(watcher);
    this.#watchers.add(watcher);
    if (this.#watchers.size === 1) this.#begin();
    return this;
  }

  leave(watcher: Watcher): void {
    if (this.#watchers.delete(watcher) && this.#watchers.size === 0) this.#end();
  }

  #begin(): void {
    const { topics } = this.#ctx;
    const known = watches.get(topics) ?? new Map<string, Watch>();
    watches.set(topics, known.set(this.#key, this));
    const caller = this.#caller;
    if (caller.kind === "agent") {
      this.#stops = [topics.subscribe("agent_gone", caller.agent_id, () => this.#lose(SIGNED_OUT))];
      return;
    }
    this.#stops = [
      topics.subscribe("key_gone", caller.key_id, () => this.#lose(SIGNED_OUT)),
      topics.subscribe("key_gone", caller.user_id, ({ except }) => {
        if (except !== caller.key_id) this.#lose(SIGNED_OUT);
      }),
    ];
    const { parent_key_id } = caller;
    if (parent_key_id !== undefined) {
      this.#stops.push(topics.subscribe("key_gone", parent_key_id, () => this.#lose(SIGNED_OUT)));
    }
    const look = (): void => this.#lookAgain(caller);
    this.#stops.push(topics.subscribe("missed", "", look));
    if (this.#access) {
      this.#stops.push(
        topics.subscribe("access_changed", this.#access.topic, look),
        topics.subscribe("access_changed", caller.user_id, look),
      );
    }
    // Access may have been lost while the connection was being set up.
    look();
  }

  #lookAgain(caller: UserCaller): void {
    this.#look(caller).then(
      (reason) => reason && this.#lose(reason),
      () => this.#access && this.#lose(this.#access.lost),
    );
  }

  /** Returns why access was lost, or undefined. Sets the timer for the key's expiry. */
  async #look(caller: UserCaller): Promise<string | undefined> {
    const { store, clock } = this.#ctx;
    const key = await store.get(findKeyWithUser({ id: caller.key_id }));
    const left = (key?.expires_at ?? 0) - clock.now();
    if (!key || key.deleted || key.status === "suspended" || left <= 0) return SIGNED_OUT;
    this.#expiry?.cancel();
    if (!this.#over) {
      this.#expiry = clock.after(Math.min(left, MAX_WAIT_MS), () => this.#lookAgain(caller));
    }
    if (!this.#access) return undefined;
    const now = { ...caller, roles: key.roles, ...(await readMemberships(store, caller.user_id)) };
    return (await this.#access.holds(now)) ? undefined : this.#access.lost;
  }

  #lose(reason: string): void {
    if (this.#over) return;
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    this.#end();
    for (const watcher of watchers) watcher.lost(reason);
  }

  #end(): void {
    this.#over = true;
    for (const stop of this.#stops) stop();
    this.#stops = [];
    this.#expiry?.cancel();
    const known = watches.get(this.#ctx.topics);
    if (known?.get(this.#key) === this) known.delete(this.#key);
  }
}
