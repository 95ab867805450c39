// Caches the JSON of GET /workspaces/{id}. An entry is used only while the workspace's stamp, which is compared each time, is unchanged and
// no value in it is outdated by elapsed time (rules WK-12 and WK-13). The cache does not check access; callers do.
import { INACTIVITY_TIMEOUT_MS } from "#actors/agent/status.ts";
import { NEVER } from "#base/clock.ts";
import { findWorkspaceStamp, listWorkspaceStamps, type WorkspaceStamp } from "#db/workspaces/fingerprint.ts";
import { readWorkspace, type Viewer } from "#domain/workspaces/present.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { ApiContext } from "../context.ts";

/** Maximum bytes of cached text; least recently used entries are evicted first. */
const MAX_BYTES = 16 * 1024 * 1024;

/** `until`: when the JSON expires even without a write, because it contains an age or a status; milliseconds since 1970. */
export type CachedJson = { readonly until: number; readonly json: string };
/** `workers`: the version of the list of connected workers; undefined if the JSON contains only the built-in worker. */
type Entry = CachedJson & { readonly stamp: string; readonly workers: number | undefined };

/** Changes with every write that may change the workspace's stamp. */
type Version = number | string;

const MAX_STAMPS = 10_000;

const toKey = (id: string, owner_id: string, { compat, user_id }: Viewer): string =>
  `${id} ${compat} ${user_id === owner_id}`;

export class WorkspaceCache {
  readonly #ctx: ApiContext;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  readonly #stamps = new Map<string, { readonly version: Version; readonly workspaceStamp: WorkspaceStamp }>();

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
  }

  /** Returns the current stamp. It is cached until a write may have changed it, because reading it is most of the cost of a response. */
  async loadStamp(id: string): Promise<WorkspaceStamp | undefined> {
    const { store } = this.#ctx;
    const version = store.getVersion?.(id);
    const cached = this.#findStamp(id, version);
    if (cached) return cached;
    const workspaceStamp = await store.get(findWorkspaceStamp(id));
    if (workspaceStamp) this.#cacheStamp(workspaceStamp, version);
    return workspaceStamp;
  }

  /** Returns the stamps of several workspaces by ID; reads only stamps that may have changed. */
  async loadStamps(ids: readonly string[]): Promise<ReadonlyMap<string, WorkspaceStamp>> {
    const { store } = this.#ctx;
    const versionList: readonly (Version | undefined)[] = store.loadVersions
      ? await store.loadVersions(ids)
      : ids.map((id) => store.getVersion?.(id));
    const versions = new Map(ids.map((id, i) => [id, versionList[i]]));
    const stamps = new Map(
      ids.flatMap((id) => this.#findStamp(id, versions.get(id)) ?? []).map((stamp) => [stamp.id, stamp]),
    );
    const missing = ids.filter((id) => !stamps.has(id));
    for (const workspaceStamp of missing.length > 0 ? await store.scan(listWorkspaceStamps(missing)) : []) {
      stamps.set(workspaceStamp.id, workspaceStamp);
      this.#cacheStamp(workspaceStamp, versions.get(workspaceStamp.id));
    }
    return stamps;
  }

  #findStamp(id: string, version: Version | undefined): WorkspaceStamp | undefined {
    const cached = this.#stamps.get(id);
    return version !== undefined && cached?.version === version ? cached.workspaceStamp : undefined;
  }

  #cacheStamp(workspaceStamp: WorkspaceStamp, version: Version | undefined): void {
    if (version === undefined) return;
    if (this.#stamps.size >= MAX_STAMPS) this.#stamps.clear();
    this.#stamps.set(workspaceStamp.id, { version, workspaceStamp });
  }

  /** Returns the workspace as JSON for this viewer; undefined when it no longer exists. */
  async read(workspaceStamp: WorkspaceStamp, viewer: Viewer): Promise<string | undefined> {
    const cached = this.find(workspaceStamp, viewer);
    if (cached) return cached.json;
    const workspace = await readWorkspace(this.#ctx, workspaceStamp.id, viewer);
    return workspace && this.store(workspaceStamp, viewer, workspace).json;
  }

  /** Returns a cached response that is still valid. */
  find({ id, owner_id, stamp }: WorkspaceStamp, viewer: Viewer): CachedJson | undefined {
    const key = toKey(id, owner_id, viewer);
    const cached = this.#entries.get(key);
    if (!cached || cached.stamp !== stamp || this.#ctx.clock.now() >= cached.until) return undefined;
    if (cached.workers !== undefined && cached.workers !== this.#ctx.jobs.workersVersion) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, cached);
    return cached;
  }

  /** The stamp must have been read before the workspace. */
  store({ id, owner_id, stamp }: WorkspaceStamp, viewer: Viewer, workspace: Workspace): CachedJson {
    const { jobs, clock } = this.#ctx;
    const isBuiltIn = workspace.latest_build.job.available_workers.includes(jobs.worker.id);
    const workers = isBuiltIn ? undefined : jobs.workersVersion;
    const entry = { stamp, workers, until: findExpiry(workspace, clock.now()), json: JSON.stringify(workspace) };
    this.#put(toKey(id, owner_id, viewer), entry);
    return entry;
  }

  /** Returns the size of the cache. */
  get size(): { entries: number; bytes: number } {
    return { entries: this.#entries.size, bytes: this.#bytes };
  }

  #put(key: string, entry: Entry): void {
    this.#drop(key);
    this.#entries.set(key, entry);
    this.#bytes += entry.json.length;
    for (const [oldest] of this.#entries) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    this.#bytes -= this.#entries.get(key)?.json.length ?? 0;
    this.#entries.delete(key);
  }
}

/** Returns `until` of the workspace's JSON. */
const findExpiry = ({ latest_build }: Workspace, now: number): number => {
  const { job } = latest_build;
  // The queue position changes without a write to this workspace.
  const isQueued = job.completed_at === undefined && job.started_at === undefined;
  if (isQueued) return now;
  return Math.min(
    Number.MAX_SAFE_INTEGER,
    ...latest_build.resources.flatMap(({ agents }) => agents).map(findAgentExpiry(now)),
  );
};

const findAgentExpiry =
  (now: number) =>
  (agent: WorkspaceAgent): number => {
    // Ages of metadata are shown in whole seconds.
    const metadataExpiry = agent.metadata.some(({ result }) => result.collected_at !== NEVER) ? now + 500 : Infinity;
    const timeoutMs = agent.connection_timeout_seconds * 1000;
    if (agent.status === "connecting" && timeoutMs > 0)
      return Math.min(metadataExpiry, Date.parse(agent.created_at) + timeoutMs);
    if (agent.status !== "connected" || agent.last_connected_at === undefined) return metadataExpiry;
    return Math.min(metadataExpiry, Date.parse(agent.last_connected_at) + INACTIVITY_TIMEOUT_MS);
  };
