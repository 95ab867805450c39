// Determines which shard of a cluster a request belongs to, using only its method, URL and headers; the node that owns the shard handles it
// (docs/spec/cluster-nodes.md). An ID never changes its shard, so known IDs cost no query. This makes no access decisions: the handling
// node checks for itself.
import type { Clock } from "#base/clock.ts";
import { isUuid, sha256 } from "#base/ids.ts";
import type { AppName } from "#base/links/app-label.ts";
import { FIRST_SHARD } from "#base/shards.ts";
import type { Store } from "#db/engine/store.ts";
import type { ShardedKind } from "#db/find-shard.ts";
import type { ShardIndex } from "#db/shard-index.ts";
import { isAppPath, makeAppHosts, parseAppPath } from "#domain/applications/names.ts";
import { getPath } from "../errors.ts";
import { findCredential } from "../identify.ts";
import { type Operations, parseVariables } from "../operations.ts";
import { NamedShards, type Owner } from "./names.ts";
import { findPlacement, type RequestPlacement } from "./strategies.ts";

/** A shard; or `here`: any node handles it and reports its own state. */
export type Destination = number | "here";

export type PlacementDeps = {
  readonly store: Pick<Store, "get">;
  readonly index: ShardIndex;
  readonly operations: Operations;
  readonly clock: Pick<Clock, "monotonic">;
  readonly config: { readonly wildcard_access_url?: string | undefined };
  /** A function, because the URL is known only once the server listens. */
  readonly accessUrl: () => URL;
};

export class Placement {
  readonly #deps: PlacementDeps;
  readonly #namedShards: NamedShards;
  /** By operation. */
  readonly #placements = new WeakMap<object, RequestPlacement>();

  constructor(deps: PlacementDeps) {
    this.#deps = deps;
    this.#namedShards = new NamedShards(deps);
  }

  /** Returns a promise only when a lookup is needed. */
  shardOf(request: Request): Destination | Promise<Destination> {
    const path = getPath(request.url);
    const app = this.#findApp(request, path);
    if (app)
      return this.#namedShards.findWorkspaceShard(parseOwner(request, app.user, this.#deps.accessUrl()), app.workspace);
    const operation = this.#deps.operations.find(request.method === "HEAD" ? "GET" : request.method, path);
    if (!operation) return FIRST_SHARD;
    const placement = this.#placements.get(operation) ?? findPlacement(operation);
    this.#placements.set(operation, placement);
    if (placement.way === "first") return FIRST_SHARD;
    return placement.way === "here"
      ? placement.way
      : this.#resolve(placement, parseVariables(operation, path), request);
  }

  #resolve(
    { way, variable }: RequestPlacement,
    variables: Record<string, string>,
    request: Request,
  ): Destination | Promise<Destination> {
    const { [variable]: resource = "", user = "me" } = variables;
    if (way === "token") return this.#resolveToken(request);
    if (way === "owner") return this.#namedShards.findOwnerShard(parseOwner(request, user, this.#deps.accessUrl()));
    if (way === "named_workspace")
      return this.#namedShards.findWorkspaceShard(parseOwner(request, user, this.#deps.accessUrl()), resource);
    if (way === "task" && !isUuid(resource))
      return this.#namedShards.findTaskShard(parseOwner(request, user, this.#deps.accessUrl()), resource);
    if (!isUuid(resource)) return FIRST_SHARD;
    const id = resource.toLowerCase();
    if (way === "chat_workspace") return this.#namedShards.findChatWorkspaceShard(id);
    return this.#lookUp(way as ShardedKind, id);
  }

  /** A token belongs to one agent permanently. The node it leads to checks whether it is still valid. */
  #resolveToken(request: Request): Destination | Promise<Destination> {
    const token = findCredential(request, this.#deps.accessUrl())?.token.toLowerCase();
    return token !== undefined && isUuid(token) ? this.#lookUp("token", sha256(token)) : FIRST_SHARD;
  }

  #lookUp(kind: ShardedKind, id: string): Destination | Promise<Destination> {
    const shard = this.#deps.index.findShardOf(kind, id);
    return shard instanceof Promise ? shard.then((found) => found ?? FIRST_SHARD) : (shard ?? FIRST_SHARD);
  }

  #findApp(request: Request, path: string): AppName | undefined {
    if (isAppPath(path)) return parseAppPath(path)?.name;
    const { config, accessUrl } = this.#deps;
    const host = request.headers.get("host") ?? "";
    return makeAppHosts({ config, accessUrl: accessUrl() }, host).parseName(host);
  }
}

/** `me` is the user of the request's key, whether or not the key is valid. */
const parseOwner = (request: Request, user: string, accessUrl: URL): Owner => {
  const token = user === "me" ? findCredential(request, accessUrl)?.token : undefined;
  return { user, key: /^([A-Za-z0-9]{10})-[A-Za-z0-9]{22}$/.exec(token ?? "")?.[1] };
};
