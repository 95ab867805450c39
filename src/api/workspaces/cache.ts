// Caches the JSON of GET /workspaces/{id}. An entry is used only while its stamp, which is read each time, is unchanged and no shown value
// depends on elapsed time (rules WK-12 and WK-13). The cache is bounded. Access is checked before the cache is read.
import { INACTIVITY_TIMEOUT_MS } from "#actors/agent/status.ts";
import { NEVER } from "#base/clock.ts";
import { findWorkspaceStamp, listWorkspaceStamps, type WorkspaceStamp } from "#db/workspaces/fingerprint.ts";
import { readWorkspace, type Viewer } from "#domain/workspaces/present.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { ApiContext } from "../context.ts";

/** Maximum bytes of cached text; least recently used entries are evicted first. */
const MAX_BYTES = 16 * 1024 * 1024;

/** `until`: no shown value changes with time alone before then; milliseconds since 1970. */
export type CachedJson = { readonly until: number; readonly json: string };
/** `workers`: the version of the connected workers it shows; undefined when it shows only the built-in one. */
type Entry = CachedJson & { readonly stamp: string; readonly workers: number | undefined };

/** Version of what is shown of one workspace. */
type Version = number | string;

/** Maximum stamps cached between writes. */
const MAX_STAMPS = 10_000;

const toKey = (id: string, owner_id: string, { compat, user_id }: Viewer): string =>
  `${id} ${compat} ${user_id === owner_id}`;

export class WorkspaceCache {
  readonly #ctx: ApiContext;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  readonly #stamps = new Map<string, { readonly version: Version; readonly stamped: WorkspaceStamp }>();

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
  }

  /** Returns the current stamp. It is read again after every write that may change it, because the read is most of a response's cost. */
  async loadStamp(id: string): Promise<WorkspaceStamp | undefined> {
    const { store } = this.#ctx;
    const version = store.getVersion?.(id);
    const cached = this.#findStamp(id, version);
    if (cached) return cached;
    const stamped = await store.get(findWorkspaceStamp(id));
    if (stamped) this.#remember(stamped, version);
    return stamped;
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
    for (const stamped of missing.length > 0 ? await store.scan(listWorkspaceStamps(missing)) : []) {
      stamps.set(stamped.id, stamped);
      this.#remember(stamped, versions.get(stamped.id));
    }
    return stamps;
  }

  #findStamp(id: string, version: Version | undefined): WorkspaceStamp | undefined {
    const cached = this.#stamps.get(id);
    return version !== undefined && cached?.version === version ? cached.stamped : undefined;
  }

  #remember(stamped: WorkspaceStamp, version: Version | undefined): void {
    if (version === undefined) return;
    if (this.#stamps.size >= MAX_STAMPS) this.#stamps.clear();
    this.#stamps.set(stamped.id, { version, stamped });
  }

  /** Returns the workspace as JSON for this viewer; undefined when it no longer exists. */
  async read(stamped: WorkspaceStamp, viewer: Viewer): Promise<string | undefined> {
    const cached = this.find(stamped, viewer);
    if (cached) return cached.json;
    const workspace = await readWorkspace(this.#ctx, stamped.id, viewer);
    return workspace && this.store(stamped, viewer, workspace).json;
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

/** Returns until when no shown value changes with time alone; milliseconds since 1970. */
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
