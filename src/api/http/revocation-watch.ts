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
  onLost(reason: string): void;
}

const SIGNED_OUT = "the session has ended, sign in again";
/** Runtime timers count milliseconds in 31 bits, so a long-lived key is checked once a day. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;

const watches = new WeakMap<Deps["topics"], Map<string, Watch>>();

/** Returns the existing watch, or a new one that starts with its first watcher. */
export const getWatch = (ctx: Deps, caller: Caller, access?: Access): Watch => {
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
  #unsubscribes: (() => void)[] = [];
  #expiry: Timer | undefined;
  #isOver = false;

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
    const existing = watches.get(this.#ctx.topics)?.get(this.#key);
    if (existing && existing !== this) return existing.join(watcher);
    if (this.#isOver) return new Watch(this.#ctx, this.#key, this.#caller, this.#access).join(watcher);
    this.#watchers.add(watcher);
    if (this.#watchers.size === 1) this.#begin();
    return this;
  }

  leave(watcher: Watcher): void {
    if (this.#watchers.delete(watcher) && this.#watchers.size === 0) this.#end();
  }

  #begin(): void {
    const { topics } = this.#ctx;
    const existing = watches.get(topics) ?? new Map<string, Watch>();
    watches.set(topics, existing.set(this.#key, this));
    const caller = this.#caller;
    if (caller.kind === "agent") {
      this.#unsubscribes = (["agent_gone", "agent_token_renewed"] as const).map((topic) =>
        topics.subscribe(topic, caller.agent_id, () => this.#revoke(SIGNED_OUT)),
      );
      return;
    }
    this.#unsubscribes = [
      topics.subscribe("key_gone", caller.key_id, () => this.#revoke(SIGNED_OUT)),
      topics.subscribe("key_gone", caller.user_id, ({ except }) => {
        if (except !== caller.key_id) this.#revoke(SIGNED_OUT);
      }),
    ];
    const { parent_key_id } = caller;
    if (parent_key_id !== undefined) {
      this.#unsubscribes.push(topics.subscribe("key_gone", parent_key_id, () => this.#revoke(SIGNED_OUT)));
    }
    const onChange = (): void => this.#recheck(caller);
    this.#unsubscribes.push(topics.subscribe("missed", "", onChange));
    if (this.#access) {
      this.#unsubscribes.push(
        topics.subscribe("access_changed", this.#access.topic, onChange),
        topics.subscribe("access_changed", caller.user_id, onChange),
      );
    }
    // Access may have been lost while the connection was being set up.
    onChange();
  }

  #recheck(caller: UserCaller): void {
    this.#check(caller).then(
      (reason) => reason && this.#revoke(reason),
      () => this.#access && this.#revoke(this.#access.lossReason),
    );
  }

  /** Returns why access was lost, or undefined. Sets the timer for the key's expiry. */
  async #check(caller: UserCaller): Promise<string | undefined> {
    const { store, clock } = this.#ctx;
    const key = await store.get(findKeyWithUser({ id: caller.key_id }));
    const remainingMs = (key?.expires_at ?? 0) - clock.now();
    if (!key || key.deleted || key.status === "suspended" || remainingMs <= 0) return SIGNED_OUT;
    this.#expiry?.cancel();
    if (!this.#isOver) {
      this.#expiry = clock.after(Math.min(remainingMs, MAX_WAIT_MS), () => this.#recheck(caller));
    }
    if (!this.#access) return undefined;
    const currentCaller = { ...caller, roles: key.roles, ...(await readMemberships(store, caller.user_id)) };
    return (await this.#access.isStillAllowed(currentCaller)) ? undefined : this.#access.lossReason;
  }

  #revoke(reason: string): void {
    if (this.#isOver) return;
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    this.#end();
    for (const watcher of watchers) watcher.onLost(reason);
  }

  #end(): void {
    this.#isOver = true;
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#unsubscribes = [];
    this.#expiry?.cancel();
    const existing = watches.get(this.#ctx.topics);
    if (existing?.get(this.#key) === this) existing.delete(this.#key);
  }
}
