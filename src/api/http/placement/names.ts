// Finds the shard of a resource that a request names under its owner: a workspace, a task, or something to be created. Names can change, so
// a workspace's shard is cached for only a second, which is enough for an app that loads many files at the same time.
import type { Clock } from "#base/clock.ts";
import { isUuid } from "#base/ids.ts";
import { FIRST_SHARD, toShard } from "#base/shards.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import type { ShardIndex } from "#db/shard-index.ts";
import { findTaskByName } from "#db/tasks/tasks.ts";
import { findKey } from "#db/users/api-keys.ts";
import { findUserByName } from "#db/users/users.ts";
import { findWorkspaceByName } from "#db/workspaces/workspaces.ts";

const TTL_MS = 1_000;
const MAX_ENTRIES = 10_000;

/** The owner in a path: `me`, an ID or a name. `key` is the ID of the request's API key. */
export type Owner = { readonly user: string; readonly key: string | undefined };

type Deps = {
  readonly store: Pick<Store, "get">;
  readonly index: ShardIndex;
  readonly clock: Pick<Clock, "monotonic">;
};
type CachedShard = { readonly part: number; readonly until: number };

export class NamedShards {
  readonly #deps: Deps;
  /** User by API key. A key belongs to one user permanently; its validity is not checked here. */
  readonly #users = new Map<string, string>();
  /** In order of expiry. */
  readonly #workspaces = new Map<string, CachedShard>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Returns the shard for resources this user will own. */
  async findOwnerShard(owner: Owner): Promise<number> {
    const id = await this.#findUserId(owner);
    return id === undefined ? FIRST_SHARD : toShard(id);
  }

  findWorkspaceShard({ user, key }: Owner, name: string): number | Promise<number> {
    const cacheKey = `${user === "me" ? `${key} of` : user} ${name}`.toLowerCase();
    const cached = this.#workspaces.get(cacheKey);
    if (cached && cached.until > this.#deps.clock.monotonic()) return cached.part;
    return this.#loadWorkspaceShard({ user, key }, name, cacheKey);
  }

  async findTaskShard(owner: Owner, name: string): Promise<number> {
    const owner_id = await this.#findUserId(owner);
    const task = owner_id === undefined ? undefined : await this.#deps.store.get(findTaskByName({ owner_id, name }));
    return (task && (await this.#deps.index.findShardOf("workspace", task.task.workspace_id))) ?? FIRST_SHARD;
  }

  /** Returns the shard of the workspace that a chat uses now, or the chat's own shard if it has none. */
  async findChatWorkspaceShard(id: string): Promise<number> {
    const { store, index } = this.#deps;
    const workspace_id = (await store.get(findChatAccessRow({ id })))?.workspace_id;
    return (
      (await (workspace_id ? index.findShardOf("workspace", workspace_id) : index.findShardOf("chat", id))) ??
      FIRST_SHARD
    );
  }

  async #loadWorkspaceShard(owner: Owner, name: string, cacheKey: string): Promise<number> {
    const { store, index, clock } = this.#deps;
    const owner_id = await this.#findUserId(owner);
    const workspace = owner_id === undefined ? undefined : await store.get(findWorkspaceByName({ owner_id, name }));
    const shard = workspace && (await index.findShardOf("workspace", workspace.id));
    if (shard === undefined) return FIRST_SHARD;
    if (this.#workspaces.size >= MAX_ENTRIES) this.#workspaces.clear();
    this.#workspaces.set(cacheKey, { part: shard, until: clock.monotonic() + TTL_MS });
    return shard;
  }

  async #findUserId({ user, key }: Owner): Promise<string | undefined> {
    const { store } = this.#deps;
    if (user === "me") return key === undefined ? undefined : (this.#users.get(key) ?? (await this.#loadKeyUser(key)));
    return isUuid(user) ? user.toLowerCase() : (await store.get(findUserByName({ username: user })))?.id;
  }

  async #loadKeyUser(key: string): Promise<string | undefined> {
    const user_id = (await this.#deps.store.get(findKey({ id: key })))?.user_id;
    if (user_id === undefined) return undefined;
    if (this.#users.size >= MAX_ENTRIES) this.#users.clear();
    this.#users.set(key, user_id);
    return user_id;
  }
}
