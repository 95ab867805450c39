// Lists workspaces: filtered, counted and ordered on a reader Worker, so that a large list does not block other requests. Rows come from
// the response cache while they are valid. A whole page is reused until a write affects any list, and its query result while only agents
// have written (rules WK-17, WK-18, WL-1 to WL-6).
import type { WorkspaceFilter } from "#db/workspaces/filter.ts";
import type { WorkspaceStamp } from "#db/workspaces/fingerprint.ts";
import { listWorkspacePage } from "#db/workspaces/lists.ts";
import { listWorkspaceViews } from "#db/workspaces/views.ts";
import { presentWorkspaces, type Viewer } from "#domain/workspaces/present.ts";
import { parseWorkspaceFilter } from "#domain/workspaces/search.ts";
import type { Page } from "#schema/page.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import type { CachedJson, WorkspaceCache } from "./cache.ts";

const HEADERS = { "content-type": "application/json; charset=utf-8" };

/** Maximum bytes of cached pages; the oldest are evicted first. */
const MAX_PAGES_BYTES = 8 * 1024 * 1024;
/** Workspaces presented at a time, fewer if they are large, and at first. */
const STEP = 50;
const FIRST_STEP = 10;
/** About the bytes of the workspaces presented at a time, if one workspace isn't larger. */
const STEP_BYTES = 2 * 1024 * 1024;
/** A larger page needs a slot until it has been sent (rule HT-51). */
const LARGE_BYTES = 1024 * 1024;
/** Maximum age of a cached page. */
const PAGE_TTL_MS = 10_000;

/** `after`: only workspaces with larger IDs, ordered by ID. */
export type WorkspacePage = Page & { readonly after?: string | undefined };

/** The workspaces on a page, and the total count. */
type FoundPage = { readonly ids: readonly string[]; readonly count: number };
type CachedPage = CachedJson & {
  readonly version: number;
  readonly found: FoundPage;
  readonly listed: number | undefined;
  /** Time of the query; milliseconds since 1970. */
  readonly found_at: number;
};

export class WorkspaceLists {
  readonly #ctx: ApiContext;
  readonly #cache: WorkspaceCache;
  readonly #pages = new Map<string, CachedPage>();
  #bytes = 0;

  constructor(ctx: ApiContext, cache: WorkspaceCache) {
    this.#ctx = ctx;
    this.#cache = cache;
  }

  /** Returns the page of workspaces that the caller can see and that match `q`, with the total count. Rejects an invalid `q` with 400. */
  async answer(caller: UserCaller, q: string, page: WorkspacePage, request: Request): Promise<Response> {
    const json = await this.#load(caller, q, page, request);
    return new Response(json, { headers: HEADERS });
  }

  async #load(caller: UserCaller, q: string, page: WorkspacePage, request: Request): Promise<string> {
    const slot = new LargeAnswer(() => this.#ctx.requests.pages.takeForAnswer(request, caller.user_id));
    const now = this.#ctx.clock.now();
    const filter = parseWorkspaceFilter(q, caller, now);
    const { shownVersion: version, listedVersion: listed } = this.#ctx.store;
    const key = JSON.stringify([caller.user_id, caller.compat, q, page, filter.scope]);
    const known = this.#pages.get(key);
    if (known && known.version === version && now < known.until) {
      await slot.grow(known.json.length);
      return known.json;
    }
    const isFound = known && listed !== undefined && known.listed === listed && now < known.found_at + PAGE_TTL_MS;
    const found = isFound ? known.found : await this.#find(caller, filter, page);
    const made = await this.#make(caller, found, slot);
    const movesWithTime = filter.has_agent !== undefined || filter.healthy !== undefined;
    if (version !== undefined && !movesWithTime) {
      const found_at = isFound ? known.found_at : now;
      this.#cachePage(key, {
        ...made,
        version,
        found,
        listed,
        found_at,
        until: Math.min(made.until, found_at + PAGE_TTL_MS),
      });
    }
    return made.json;
  }

  async #find(viewer: Viewer, filter: WorkspaceFilter, { limit, offset, after }: WorkspacePage): Promise<FoundPage> {
    const wanted = Math.min(limit + offset, Number.MAX_SAFE_INTEGER - 1);
    const rows = await this.#ctx.store.scan(
      listWorkspacePage(filter, { favorites_of: viewer.user_id, limit: wanted, after }),
    );
    return { ids: rows.flatMap(({ id }) => id ?? []).slice(offset, offset + limit), count: rows[0]?.count ?? 0 };
  }

  async #make(viewer: Viewer, { ids, count }: FoundPage, slot: LargeAnswer): Promise<CachedJson> {
    const shown = await this.#render(ids, viewer, slot);
    await slot.grow(shown.reduce((sum, { json }) => sum + json.length, 0));
    return {
      json: `{"workspaces":[${shown.map(({ json }) => json).join(",")}],"count":${count}}`,
      until: Math.min(Number.MAX_SAFE_INTEGER, ...shown.map(({ until }) => until)),
    };
  }

  /** Keeps the given order; workspaces deleted in the meantime are left out. */
  async #render(ids: readonly string[], viewer: Viewer, slot: LargeAnswer): Promise<CachedJson[]> {
    if (ids.length === 0) return [];
    const { store } = this.#ctx;
    const stamps = await this.#cache.loadStamps(ids);
    const made = new Map<string, CachedJson>();
    const missing: WorkspaceStamp[] = [];
    for (const stamp of stamps.values()) {
      const known = this.#cache.find(stamp, viewer);
      if (known) made.set(stamp.id, known);
      else missing.push(stamp);
    }
    // In steps, so that a long list does not block other requests.
    let bytes = 0;
    for (let at = 0, step = FIRST_STEP; at < missing.length; at += step, step = toStep(bytes / at)) {
      const ids = missing.slice(at, at + step).map(({ id }) => id);
      const views = await store.scan(listWorkspaceViews({ ids: JSON.stringify(ids) }));
      const workspaces = await presentWorkspaces(this.#ctx, views, viewer, { all: (query) => store.scan(query) });
      for (const workspace of workspaces) {
        const stamp = stamps.get(workspace.id);
        if (!stamp) continue;
        const one = this.#cache.store(stamp, viewer, workspace);
        made.set(workspace.id, one);
        bytes += one.json.length;
      }
      await slot.grow(bytes);
    }
    return ids.flatMap((id) => made.get(id) ?? []);
  }

  #cachePage(key: string, page: CachedPage): void {
    this.#drop(key);
    this.#pages.set(key, page);
    this.#bytes += page.json.length;
    for (const [oldest] of this.#pages) {
      if (this.#bytes <= MAX_PAGES_BYTES) return;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    this.#bytes -= this.#pages.get(key)?.json.length ?? 0;
    this.#pages.delete(key);
  }
}

/** Returns how many workspaces of an average size are presented next. */
const toStep = (average: number): number => Math.min(STEP, Math.max(1, Math.floor(STEP_BYTES / Math.max(average, 1))));

/** Takes a slot as soon as an answer is known to be large. */
class LargeAnswer {
  readonly #take: () => Promise<void>;
  #isTaken = false;

  constructor(take: () => Promise<void>) {
    this.#take = take;
  }

  /** Resolves when an answer of this size may be read on. */
  async grow(bytes: number): Promise<void> {
    if (this.#isTaken || bytes < LARGE_BYTES) return;
    this.#isTaken = true;
    await this.#take();
  }
}
