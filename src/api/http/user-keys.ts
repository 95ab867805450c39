// Caches users by API key until something is written that affects callers (`callersVersion` of the store): looking up a key and its user's
// memberships takes most of the time of a cheap GET.

import type { RowOfQuery } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { findKeyWithUser } from "#db/users/api-keys.ts";
import { type Memberships, readMemberships } from "#db/users/members.ts";

const MAX_ENTRIES = 10_000;

export type KeyOfUser = NonNullable<RowOfQuery<typeof findKeyWithUser>>;

/** A key with its user and the user's memberships. */
export type CachedKey = { readonly key: KeyOfUser; readonly memberships: Memberships };

export class UserKeys {
  readonly #store: Store;
  readonly #cache = new Map<string, CachedKey>();
  #version: number | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Returns the key with its user in any state; undefined when it does not exist. Does not check the secret. */
  async find(id: string): Promise<CachedKey | undefined> {
    const store = this.#store;
    await store.refreshCallersVersion?.();
    const version = store.callersVersion;
    if (version !== this.#version || this.#cache.size >= MAX_ENTRIES) this.#cache.clear();
    this.#version = version;
    const cached = this.#cache.get(id);
    if (cached) return cached;
    const key = await store.get(findKeyWithUser({ id }));
    if (!key) return undefined;
    const loaded = { key, memberships: await readMemberships(store, key.user_id) };
    if (version !== undefined && version === store.callersVersion) this.#cache.set(id, loaded);
    return loaded;
  }
}
