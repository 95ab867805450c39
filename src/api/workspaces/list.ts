// Lists workspaces: filtered, counted and ordered on a reader Worker, so that a large list does not block other requests. Rows come from
// the response cache while they are valid. A rendered page is cached until any list changes. Writes by agents invalidate only the rendered
// page, not the list of matching IDs (rules WK-17, WK-18, WL-1 to WL-6).
import type { WorkspaceFilter } from "#db/workspaces/filter.ts";
import type { WorkspaceStamp } from "#db/workspaces/fingerprint.ts";
import { listWorkspacePage } from "#db/workspaces/lists.ts";
import { listWorkspaceViews } from "#db/workspaces/views.ts";
import { presentWorkspaces, type Viewer } from "#domain/workspaces/present.ts";
import { parseWorkspaceFilter } from "#domain/workspaces/search.ts";
import type { Page } from "#schema/page.ts";
import type { ApiContext } from "../context.ts";
import { JSON_HEADERS, LARGE_CHARS, presentList } from "../http/answers/large-list.ts";
import type { UserCaller } from "../http/caller.ts";
import type { CachedJson, WorkspaceCache } from "./cache.ts";

/** Maximum bytes of cached pages; the oldest are evicted first. */
const MAX_PAGES_BYTES = 8 * 1024 * 1024;
/** Maximum age of a cached page. */
const PAGE_TTL_MS = 10_000;

/** `after`: only workspaces with larger IDs, ordered by ID. */
export type WorkspacePage = Page & { readonly after?: string | undefined };

/** The workspaces on a page, and the total count. */
type FoundPage = { readonly ids: readonly string[]; readonly count: number };
type CachedPage = CachedJson & {
  readonly version: number;
  readonly result: FoundPage;
  readonly listedVersion: number | undefined;
  /** Time of the query; milliseconds since 1970. */
  readonly queriedAt: number;
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
    return new Response(await this.#load(caller, q, page, request), { headers: JSON_HEADERS });
  }

  async #load(
    caller: UserCaller,
    q: string,
    page: WorkspacePage,
    request: Request,
  ): Promise<string | ReadableStream<Uint8Array>> {
    const now = this.#ctx.clock.now();
    const filter = parseWorkspaceFilter(q, caller, now);
    const { shownVersion: version, listedVersion } = this.#ctx.store;
    const key = JSON.stringify([caller.user_id, caller.compat, q, page, filter.scope]);
    const cached = this.#pages.get(key);
    if (cached && cached.version === version && now < cached.until) {
      if (cached.json.length >= LARGE_CHARS)
        await this.#ctx.requests.pages.acquireUntilAnswered(request, caller.user_id);
      return cached.json;
    }
    const canReuseResult =
      cached &&
      listedVersion !== undefined &&
      cached.listedVersion === listedVersion &&
      now < cached.queriedAt + PAGE_TTL_MS;
    const result = canReuseResult ? cached.result : await this.#find(caller, filter, page);
    const rendered = await this.#presentPage(caller, result, request);
    if (typeof rendered.json !== "string") return rendered.json;
    const dependsOnTime = filter.has_agent !== undefined || filter.healthy !== undefined;
    if (version !== undefined && !dependsOnTime) {
      const queriedAt = canReuseResult ? cached.queriedAt : now;
      this.#cachePage(key, {
        json: rendered.json,
        version,
        result,
        listedVersion,
        queriedAt,
        until: Math.min(rendered.until, queriedAt + PAGE_TTL_MS),
      });
    }
    return rendered.json;
  }

  async #find(viewer: Viewer, filter: WorkspaceFilter, { limit, offset, after }: WorkspacePage): Promise<FoundPage> {
    const rowCount = Math.min(limit + offset, Number.MAX_SAFE_INTEGER - 1);
    const rows = await this.#ctx.store.scan(
      listWorkspacePage(filter, { favorites_of: viewer.user_id, limit: rowCount, after }),
    );
    return { ids: rows.flatMap(({ id }) => id ?? []).slice(offset, offset + limit), count: rows[0]?.count ?? 0 };
  }

  /** Keeps the given order; workspaces deleted in the meantime are left out. */
  async #presentPage(viewer: Viewer & UserCaller, { ids, count }: FoundPage, request: Request) {
    const { store, requests, clock } = this.#ctx;
    const stamps = await this.#cache.loadStamps(ids);
    let validUntil = Number.MAX_SAFE_INTEGER;
    const takeJson = (entry: CachedJson): string => {
      validUntil = Math.min(validUntil, entry.until);
      return entry.json;
    };
    const list = {
      head: '{"workspaces":[',
      ids: ids.filter((id) => stamps.has(id)),
      tail: `],"count":${count}}`,
      find: (id: string): string | undefined => {
        const cached = this.#cache.find(stamps.get(id) as WorkspaceStamp, viewer);
        return cached && takeJson(cached);
      },
      present: async (missing: readonly string[]): Promise<Map<string, string>> => {
        const views = await store.scan(listWorkspaceViews({ ids: JSON.stringify(missing) }));
        const workspaces = await presentWorkspaces(this.#ctx, views, viewer, { all: (query) => store.scan(query) });
        return new Map(
          workspaces.map((workspace) => [
            workspace.id,
            takeJson(this.#cache.store(stamps.get(workspace.id) as WorkspaceStamp, viewer, workspace)),
          ]),
        );
      },
    };
    const json = await presentList(list, { pages: requests.pages, clock, request, holder: viewer.user_id });
    return { json, until: validUntil };
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
