// Serves all watchers of workspaces. Each change is read and serialized once for all watchers with the same view, and each watcher gets the
// newest state once, in order. Changes during a read cause one more read (rules WK-9 to WK-11).

import { INACTIVITY_TIMEOUT_MS } from "#actors/agent/status.ts";
import { log } from "#base/log.ts";
import { TurnThrottle } from "#base/loop-pacing.ts";
import { nextTurn } from "#base/retry.ts";
import { readWorkspace, type Viewer } from "#domain/workspaces/present.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { ApiContext } from "../context.ts";
import { BroadChanges } from "./broad-changes.ts";
import { SilenceTimer } from "./silence-timer.ts";
import { SourceIndex } from "./watched-sources.ts";

/** After this time, the event loop runs other requests first. */
const MAX_WORK_MS = 5;

export interface Watcher {
  readonly viewer: Viewer;
  /** Receives the whole workspace as one line of JSON. */
  onData(json: string): void;
  /** Called when the workspace cannot be read; the next change triggers a retry. */
  onError(): void;
}

export class Watchers {
  readonly #ctx: ApiContext;
  readonly #watched = new Map<string, WatchedWorkspace>();
  readonly #services: Services;

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
    const broadChanges = new BroadChanges(ctx.clock);
    const sources = new SourceIndex<WatchedWorkspace>();
    this.#services = { silenceTimer: new SilenceTimer(ctx.clock), throttle: new TurnThrottle(), broadChanges, sources };
    ctx.topics.subscribeAll("shown_changed", (id) => broadChanges.refresh(sources.noteChanged(id)));
    ctx.topics.subscribeAll("missed", () => broadChanges.refresh(this.#watched.values()));
    ctx.jobs.onChange(() => broadChanges.onQueueChanged());
  }

  /** Sends the workspace to the watcher now and after each change, until the returned function is called. */
  watch(id: string, watcher: Watcher): () => void {
    const watched = this.#watched.get(id) ?? new WatchedWorkspace(this.#ctx, id, this.#services);
    this.#watched.set(id, watched);
    watched.add(watcher);
    return () => {
      if (watched.remove(watcher) && this.#watched.get(id) === watched) this.#watched.delete(id);
    };
  }

  /** Returns the number of watched workspaces. */
  get size(): number {
    return this.#watched.size;
  }
}

/** Services shared by all watched workspaces. */
type Services = {
  readonly silenceTimer: SilenceTimer;
  readonly throttle: TurnThrottle;
  readonly broadChanges: BroadChanges;
  readonly sources: SourceIndex<WatchedWorkspace>;
};

type Rendered = { json: string; fingerprint: number | bigint; statuses: string };

class WatchedWorkspace {
  readonly #ctx: ApiContext;
  readonly #id: string;
  /** Fingerprint of the JSON that each watcher got last; undefined before the first. The JSON would take several KB per workspace. */
  readonly #lastSent = new Map<Watcher, Rendered["fingerprint"] | undefined>();
  readonly #unsubscribes: (() => void)[];
  #isStale = false;
  #isReading = false;
  #statuses = "";
  readonly #services: Services;

  constructor(ctx: ApiContext, id: string, services: Services) {
    this.#ctx = ctx;
    this.#id = id;
    this.#services = services;
    const wake = () => this.refresh();
    this.#unsubscribes = [
      ctx.topics.subscribe("workspace", id, wake),
      ctx.topics.subscribe("workspace_changed", id, wake),
    ];
  }

  add(watcher: Watcher): void {
    this.#lastSent.set(watcher, undefined);
    this.refresh();
  }

  /** Returns true when no watchers are left. */
  remove(watcher: Watcher): boolean {
    this.#lastSent.delete(watcher);
    if (this.#lastSent.size > 0) return false;
    for (const unsubscribe of this.#unsubscribes.splice(0)) unsubscribe();
    this.#unregister();
    return true;
  }

  /** Reads the workspace again and sends it to the watchers whose view has changed. */
  refresh(): void {
    this.#isStale = true;
    if (this.#isReading) return;
    this.#isReading = true;
    void this.#sendChanges().finally(() => {
      this.#isReading = false;
      // A change may have arrived since the last read.
      if (this.#isStale && this.#lastSent.size > 0) this.refresh();
    });
  }

  async #sendChanges(): Promise<void> {
    // Everything committed in the rest of this turn is read together.
    await nextTurn();
    // Hundreds of workspaces can change at the same time. Changes until this one's turn are read together, too.
    await this.#services.throttle.next();
    while (this.#isStale && this.#lastSent.size > 0) {
      this.#isStale = false;
      const renderings = new Map<string, Promise<Rendered | undefined>>();
      let startedAt = this.#ctx.clock.monotonic();
      for (const watcher of [...this.#lastSent.keys()]) {
        const { user_id, compat } = watcher.viewer;
        const key = `${compat} ${user_id}`;
        const rendering = renderings.get(key) ?? this.#render(watcher.viewer);
        renderings.set(key, rendering);
        const rendered = await rendering;
        if (!this.#lastSent.has(watcher)) continue;
        if (!rendered) watcher.onError();
        else if (rendered.fingerprint !== this.#lastSent.get(watcher)) {
          this.#lastSent.set(watcher, rendered.fingerprint);
          this.#statuses = rendered.statuses;
          watcher.onData(rendered.json);
        }
        // A large workspace can have thousands of watchers.
        if (this.#ctx.clock.monotonic() - startedAt > MAX_WORK_MS) {
          await nextTurn();
          startedAt = this.#ctx.clock.monotonic();
        }
      }
    }
  }

  async #render(viewer: Viewer): Promise<Rendered | undefined> {
    const { changeCount } = this.#services.sources;
    try {
      const workspace = await readWorkspace(this.#ctx, this.#id, viewer);
      if (!workspace) return undefined;
      this.#listen(workspace, changeCount);
      const json = JSON.stringify(workspace);
      return { json, fingerprint: Bun.hash(json), statuses: formatStatuses(workspace) };
    } catch (error) {
      log("watch").warn("workspace {id} cannot be read: {error}", { id: this.#id, error });
      return undefined;
    }
  }

  /** Subscribes to changes of everything the workspace shows; `changeCount` is the number of changes from before it was read. */
  #listen(workspace: Workspace, changeCount: number): void {
    const { broadChanges, sources } = this.#services;
    // The last watcher may have left during the read.
    if (this.#lastSent.size === 0) {
      this.#unregister();
      return;
    }
    sources.register(this, listSources(workspace));
    if (changeCount !== sources.changeCount) this.refresh();
    broadChanges.setQueued(this, dependsOnQueue(workspace, this.#ctx.jobs.worker.id));
    this.#listenForSilence(workspace);
  }

  #unregister(): void {
    const { broadChanges, silenceTimer, sources } = this.#services;
    sources.unregister(this);
    broadChanges.remove(this);
    silenceTimer.remove(this);
  }

  // No event reports that an agent has stopped sending messages, so the workspace is read again when an agent's status may have changed.
  #listenForSilence(workspace: Workspace): void {
    const silenceTimes = workspace.latest_build.resources.flatMap(({ agents }) => agents).flatMap(listSilenceTimes);
    if (silenceTimes.length === 0) this.#services.silenceTimer.remove(this);
    else this.#services.silenceTimer.schedule(this, Math.min(...silenceTimes), () => void this.#checkSilence());
  }

  async #checkSilence(): Promise<void> {
    const [watcher] = this.#lastSent.keys();
    const rendered = watcher && (await this.#render(watcher.viewer));
    if (rendered && rendered.statuses !== this.#statuses) this.refresh();
  }
}

/** Returns the sources of shown data other than the workspace, its build and its agents. */
const listSources = ({ latest_build, ...workspace }: Workspace): Set<string> =>
  new Set([
    ...[workspace.template_id, workspace.owner_id, workspace.organization_id],
    ...[latest_build.template_version_id, latest_build.initiator_id],
    ...workspace.shared_with.map(({ id }) => id),
  ]);

/** Returns whether the workspace shows a queue position, or workers other than the built-in one. */
const dependsOnQueue = ({ latest_build: { job } }: Workspace, builtInWorkerId: string): boolean =>
  (job.started_at === undefined && job.completed_at === undefined) || !job.available_workers.includes(builtInWorkerId);

type Agent = Workspace["latest_build"]["resources"][number]["agents"][number];

const listSilenceTimes = (agent: Agent): number[] => {
  if (agent.status === "connected")
    return [Date.parse(agent.last_connected_at ?? agent.created_at) + INACTIVITY_TIMEOUT_MS + 1];
  const timeoutMs = agent.connection_timeout_seconds * 1000;
  return agent.status === "connecting" && timeoutMs > 0 ? [Date.parse(agent.created_at) + timeoutMs + 1] : [];
};

const formatStatuses = (workspace: Workspace): string =>
  workspace.latest_build.resources
    .flatMap(({ agents }) => agents)
    .map(({ id, status }) => `${id} ${status}`)
    .join();
