// Determines which part of a cluster a request belongs to, from its head alone; the node that owns the part handles it
// (docs/spec/cluster-nodes.md). An ID never changes its part, so known IDs cost no query. This makes no access decisions: the handling node
// checks for itself.
import type { Clock } from "#base/clock.ts";
import { isUuid, sha256 } from "#base/ids.ts";
import type { AppName } from "#base/links/app-label.ts";
import { FIRST_PART } from "#base/parts.ts";
import type { Store } from "#db/engine/store.ts";
import type { PartIndex } from "#db/part-index.ts";
import type { Parted } from "#db/part-of.ts";
import { appHosts, appPath, isAppPath } from "#domain/applications/names.ts";
import { getPath } from "../errors.ts";
import { findCredential } from "../identify.ts";
import { type Operations, variablesIn } from "../operations.ts";
import { NamedPlaces, type Owner } from "./names.ts";
import { type Found, findWay } from "./ways.ts";

/** A part; or `here`: any node handles it and reports its own state. */
export type Place = number | "here";

export type PlacementDeps = {
  readonly store: Pick<Store, "get">;
  readonly index: PartIndex;
  readonly operations: Operations;
  readonly clock: Pick<Clock, "monotonic">;
  readonly config: { readonly wildcard_access_url?: string | undefined };
  /** A function, because the URL is known only once the server listens. */
  readonly accessUrl: () => URL;
};

export class Placement {
  readonly #deps: PlacementDeps;
  readonly #named: NamedPlaces;
  /** By operation. */
  readonly #ways = new WeakMap<object, Found>();

  constructor(deps: PlacementDeps) {
    this.#deps = deps;
    this.#named = new NamedPlaces(deps);
  }

  /** Returns a promise only when a lookup is needed. */
  partOf(request: Request): Place | Promise<Place> {
    const path = getPath(request.url);
    const app = this.#appOf(request, path);
    if (app) return this.#named.workspace(ownerIn(request, app.user), app.workspace);
    const operation = this.#deps.operations.find(request.method === "HEAD" ? "GET" : request.method, path);
    if (!operation) return FIRST_PART;
    const found = this.#ways.get(operation) ?? findWay(operation);
    this.#ways.set(operation, found);
    if (found.way === "first") return FIRST_PART;
    return found.way === "here" ? found.way : this.#along(found, variablesIn(operation, path), request);
  }

  #along({ way, variable }: Found, variables: Record<string, string>, request: Request): Place | Promise<Place> {
    const { [variable]: named = "", user = "me" } = variables;
    if (way === "token") return this.#byToken(request);
    if (way === "owner") return this.#named.owner(ownerIn(request, user));
    if (way === "named_workspace") return this.#named.workspace(ownerIn(request, user), named);
    if (way === "task" && !isUuid(named)) return this.#named.task(ownerIn(request, user), named);
    if (!isUuid(named)) return FIRST_PART;
    const id = named.toLowerCase();
    if (way === "chat_workspace") return this.#named.workspaceOfChat(id);
    return this.#look(way as Parted, id);
  }

  /** A token belongs to one agent permanently. The node it leads to checks whether it is still valid. */
  #byToken(request: Request): Place | Promise<Place> {
    const token = findCredential(request)?.token.toLowerCase();
    return token !== undefined && isUuid(token) ? this.#look("token", sha256(token)) : FIRST_PART;
  }

  #look(kind: Parted, id: string): Place | Promise<Place> {
    const part = this.#deps.index.of(kind, id);
    return part instanceof Promise ? part.then((found) => found ?? FIRST_PART) : (part ?? FIRST_PART);
  }

  #appOf(request: Request, path: string): AppName | undefined {
    if (isAppPath(path)) return appPath(path)?.name;
    const { config, accessUrl } = this.#deps;
    const host = request.headers.get("host") ?? "";
    return appHosts({ config, accessUrl: accessUrl() }, host).nameIn(host);
  }
}

/** `me` is the user of the request's key, whether or not the key is valid. */
const ownerIn = (request: Request, user: string): Owner => {
  const token = user === "me" ? findCredential(request)?.token : undefined;
  return { user, key: /^([A-Za-z0-9]{10})-[A-Za-z0-9]{22}$/.exec(token ?? "")?.[1] };
};
