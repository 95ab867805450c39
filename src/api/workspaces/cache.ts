// Answers to GET /workspaces/{id} that were made before, as JSON text. An answer is used again only while its stamp, read fresh each
// time, is the same and the time has changed nothing in it (rules WK-12 and WK-13). Bounded; whether the caller may see the
// workspace is decided before this is asked.
import { INACTIVE_MS } from "#actors/agent/status.ts";
import { NEVER } from "#base/clock.ts";
import { findWorkspaceStamp, listWorkspaceStamps, type WorkspaceStamp } from "#db/workspaces/stamps.ts";
import { readWorkspace, type Viewer } from "#domain/workspaces/present.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { ApiContext } from "../context.ts";

/** Bytes of text that are kept; the entries not used for longest go first. */
const MAX_BYTES = 16 * 1024 * 1024;

/** `until`: nothing in it changes before by the mere passing of time; milliseconds since 1970. */
export type Made = { readonly until: number; readonly json: string };
/** `workers`: the version of the connected workers it shows; undefined when it shows none but the built-in one. */
type Entry = Made & { readonly stamp: string; readonly workers: number | undefined };

/** Of what is shown of one workspace. */
type Version = number | string;

/** Stamps that are kept between writes. */
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

  /** Its stamp as it is now: read again after every write that may change it, since reading is most of the cost of an answer. */
  async stampOf(id: string): Promise<WorkspaceStamp | undefined> {
    const { store } = this.#ctx;
    const version = store.versionOf?.(id);
    const known = this.#known(id, version);
    if (known) return known;
    const stamped = await store.get(findWorkspaceStamp(id));
    if (stamped) this.#remember(stamped, version);
    return stamped;
  }

  /** The same of several, by their ids: those are read that may have changed. */
  async stampsOf(ids: readonly string[]): Promise<ReadonlyMap<string, WorkspaceStamp>> {
    const { store } = this.#ctx;
    const asked: readonly (Version | undefined)[] = store.versionsOf
      ? await store.versionsOf(ids)
      : ids.map((id) => store.versionOf?.(id));
    const versions = new Map(ids.map((id, i) => [id, asked[i]]));
    const stamps = new Map(ids.flatMap((id) => this.#known(id, versions.get(id)) ?? []).map((one) => [one.id, one]));
    const missing = ids.filter((id) => !stamps.has(id));
    for (const stamped of missing.length > 0 ? await store.scan(listWorkspaceStamps(missing)) : []) {
      stamps.set(stamped.id, stamped);
      this.#remember(stamped, versions.get(stamped.id));
    }
    return stamps;
  }

  #known(id: string, version: Version | undefined): WorkspaceStamp | undefined {
    const known = this.#stamps.get(id);
    return version !== undefined && known?.version === version ? known.stamped : undefined;
  }

  #remember(stamped: WorkspaceStamp, version: Version | undefined): void {
    if (version === undefined) return;
    if (this.#stamps.size >= MAX_STAMPS) this.#stamps.clear();
    this.#stamps.set(stamped.id, { version, stamped });
  }

  /** The workspace as this viewer sees it, as JSON; undefined when it no longer exists. */
  async read(stamped: WorkspaceStamp, viewer: Viewer): Promise<string | undefined> {
    const known = this.find(stamped, viewer);
    if (known) return known.json;
    const workspace = await readWorkspace(this.#ctx, stamped.id, viewer);
    return workspace && this.keep(stamped, viewer, workspace).json;
  }

  /** What was made before and is still right. */
  find({ id, owner_id, stamp }: WorkspaceStamp, viewer: Viewer): Made | undefined {
    const key = toKey(id, owner_id, viewer);
    const known = this.#entries.get(key);
    if (!known || known.stamp !== stamp || this.#ctx.clock.now() >= known.until) return undefined;
    if (known.workers !== undefined && known.workers !== this.#ctx.jobs.workersVersion) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, known);
    return known;
  }

  /** `stamped` was read before the workspace was. */
  keep({ id, owner_id, stamp }: WorkspaceStamp, viewer: Viewer, workspace: Workspace): Made {
    const { jobs, clock } = this.#ctx;
    const isBuiltIn = workspace.latest_build.job.available_workers.includes(jobs.worker.id);
    const workers = isBuiltIn ? undefined : jobs.workersVersion;
    const entry = { stamp, workers, until: goodUntil(workspace, clock.now()), json: JSON.stringify(workspace) };
    this.#keep(toKey(id, owner_id, viewer), entry);
    return entry;
  }

  /** How much is kept. */
  get size(): { entries: number; bytes: number } {
    return { entries: this.#entries.size, bytes: this.#bytes };
  }

  #keep(key: string, entry: Entry): void {
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

/** Until when nothing in it changes by the mere passing of time; milliseconds since 1970. */
const goodUntil = ({ latest_build }: Workspace, now: number): number => {
  const { job } = latest_build;
  // The place in the queue moves without anything being written.
  const waits = job.completed_at === undefined && job.started_at === undefined;
  if (waits) return now;
  return Math.min(
    Number.MAX_SAFE_INTEGER,
    ...latest_build.resources.flatMap(({ agents }) => agents).map(agentUntil(now)),
  );
};

const agentUntil =
  (now: number) =>
  (agent: WorkspaceAgent): number => {
    // Ages of measurements are shown in whole seconds.
    const measured = agent.metadata.some(({ result }) => result.collected_at !== NEVER) ? now + 500 : Infinity;
    const allowed = agent.connection_timeout_seconds * 1000;
    if (agent.status === "connecting" && allowed > 0) return Math.min(measured, Date.parse(agent.created_at) + allowed);
    if (agent.status !== "connected" || agent.last_connected_at === undefined) return measured;
    return Math.min(measured, Date.parse(agent.last_connected_at) + INACTIVE_MS);
  };
