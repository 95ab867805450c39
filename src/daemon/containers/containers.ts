// The containers of the workspace and its devcontainers, for the server (facts/platform 5.3, rules CO-1 to CO-9). Queries the engine on
// every request; stores only what is in progress, what failed and what was deleted.
import type { Clock, Timer } from "#base/clock.ts";
import { AppError, conflict, notFound } from "#base/errors.ts";
import { log } from "#base/log.ts";
import type {
  Container,
  DevcontainerStatus,
  FoundContainers,
  FoundDevcontainer,
} from "#schema/workspaces/container.ts";
import type { DeclaredDevcontainer } from "./declared.ts";
import type { DevcontainerEngine } from "./devcontainers-cli.ts";
import {
  type DevcontainerPaths,
  findContainer,
  findDevcontainers,
  listDevcontainerPaths,
  readModifiedTime,
  toDevcontainerId,
  toSafeName,
} from "./devcontainers-find.ts";
import type { ContainerEngine } from "./engine.ts";
import type { SubAgents } from "./sub-agents.ts";

export type ContainersOptions = {
  clock: Clock;
  /** Returns undefined if the workspace has no container engine. */
  engine(): ContainerEngine | undefined;
  devcontainers: DevcontainerEngine;
  /** Undefined if there is no program to copy into containers, and in an agent inside another agent's container. */
  agents: SubAgents | undefined;
  /** The agent's folder. */
  directory: string;
  /**
   * Returns the devcontainers that the template names; their names are kept. Called each time, because a start script may create the files.
   */
  declared(): readonly DeclaredDevcontainer[];
};

/** How often plain containers are polled for watchers. */
const POLL_INTERVAL_MS = 10_000;

/** State of a devcontainer in addition to what the disk and the engine report. */
type Memory = { doing?: DevcontainerStatus; error?: string; deleted_at?: number };

export class Containers {
  readonly #options: ContainersOptions;
  readonly #memory = new Map<string, Memory>();
  readonly #watchers = new Set<(listing: string) => void>();
  #timer: Timer | undefined;
  #last = "";
  #notifying: Promise<void> = Promise.resolve();
  /** Containers created here, by devcontainer: they are removed with the workspace. */
  readonly #made = new Map<string, string>();
  #keeping: Timer | undefined;
  #ended = false;

  constructor(options: ContainersOptions) {
    this.#options = options;
  }

  /** Lists only containers that carry all `labels` (an empty value matches any); always lists devcontainers and warnings. */
  async list(labels: readonly (readonly [string, string])[] = []): Promise<FoundContainers> {
    const { containers, warnings } = await this.#listContainers();
    const hasDevcontainer = (one: Container): boolean =>
      labels.every(([key, value]) => key in one.labels && (value === "" || one.labels[key] === value));
    return {
      containers: containers.filter(hasDevcontainer),
      devcontainers: this.#listDevcontainers(containers),
      warnings: [...warnings, ...findPortConflicts(containers), ...this.#listAgentFailures(containers)],
    };
  }

  /** Starts the devcontainers of the template one by one, and from then on keeps an agent in each running devcontainer. */
  async begin(): Promise<void> {
    for (const { name } of this.#options.declared()) {
      if (this.#ended) return;
      const { devcontainers } = await this.list();
      const found = devcontainers.find((one) => one.name === name);
      if (found)
        await this.#begin(found.id, () => "starting").then(
          (one) => this.#start(one, false),
          () => {},
        );
    }
    if (this.#ended || !this.#options.agents) return;
    this.#keeping = this.#options.clock.every(POLL_INTERVAL_MS, () => void this.#reconcileAgents());
    await this.#reconcileAgents();
  }

  /** Ends the agents inside; with `remove`, also removes the containers created here. Mounted files stay. */
  async end(remove: boolean): Promise<void> {
    this.#ended = true;
    this.#keeping?.cancel();
    await this.#options.agents?.endAll();
    const engine = this.#options.engine();
    if (!remove || !engine) return;
    const { containers } = await this.#listContainers();
    await Promise.all(
      [...this.#made.values()].map((id) =>
        engine.removeWhole(containers.find((one) => one.id === id) ?? { id, labels: {} }).catch((error: unknown) => {
          log("daemon").warn("the container {id} of a devcontainer was not removed: {error}", { id, error });
        }),
      ),
    );
  }

  /** Sends each listing as JSON text: the first immediately, then one per change. Returns a function that stops watching. */
  watch(tell: (listing: string) => void): () => void {
    let isFirst = true;
    const onFirstListing = (listing: string): void => {
      isFirst = false;
      tell(listing);
    };
    if (this.#watchers.size === 0) this.#last = "";
    this.#watchers.add(onFirstListing);
    this.#timer ??= this.#options.clock.every(POLL_INTERVAL_MS, () => this.#notifyWatchers());
    void this.list().then((listing) => {
      if (isFirst && this.#watchers.has(onFirstListing)) onFirstListing(JSON.stringify(listing));
    });
    return () => {
      this.#watchers.delete(onFirstListing);
      if (this.#watchers.size > 0) return;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  /**
   * Starts to recreate a devcontainer; the listing shows the result. Rejects with 404, with 403 for a devcontainer of the template, and
   * with 409 while another operation runs.
   */
  async recreate(requested: string): Promise<void> {
    const found = await this.#begin(requested, ({ subagent_id }) => {
      if (subagent_id !== null) throw new AppError("forbidden", "The template made this devcontainer.");
      return "starting";
    });
    void this.#start(found, true);
  }

  /**
   * Stops and removes its container. The devcontainer is not listed until its file changes or a container of it appears. Rejects with 404
   * or 409.
   */
  async delete(requested: string): Promise<void> {
    const { id, container } = await this.#begin(requested, (one) => (one.container?.running ? "stopping" : "deleting"));
    const engine = this.#options.engine();
    try {
      await this.#options.agents?.end(id);
      this.#made.delete(id);
      if (container && engine) {
        if (container.running) await engine.stop(container.id);
        this.#remember(id, { doing: "deleting" });
        await engine.removeWhole(container);
      }
      this.#remember(id, { deleted_at: this.#options.clock.now() });
    } catch (error) {
      this.#remember(id, { error: (error as Error).message });
      throw error;
    }
  }

  /** Starts its container and the agent in it. Never rejects: the listing shows a failure. */
  async #start(one: FoundDevcontainer, replace: boolean): Promise<void> {
    const { agents, devcontainers } = this.#options;
    try {
      await agents?.end(one.id);
      const startedContainer = await devcontainers.up({ ...one, replace });
      this.#made.set(one.id, startedContainer.container_id);
      await agents?.start(one, async () => startedContainer, startedContainer.container_id);
      this.#remember(one.id, startedContainer.problem === undefined ? {} : { error: startedContainer.problem });
    } catch (error) {
      log("daemon").warn("the devcontainer {name} could not be made: {error}", { name: one.name, error });
      this.#remember(one.id, { error: error instanceof Error ? error.message : String(error) });
    }
  }

  /**
   * Keeps an agent in each running devcontainer of this workspace's own folders, and ends the agents of devcontainers that do
   * not run.
   */
  async #reconcileAgents(): Promise<void> {
    const { agents, declared, devcontainers, directory } = this.#options;
    if (!agents) return;
    const own = new Set([...declared(), ...findDevcontainers(directory)].map(toDevcontainerId));
    const { devcontainers: found } = await this.list();
    const idle = found.filter(({ id }) => own.has(id) && this.#memory.get(id)?.doing === undefined);
    const before = idle.map(({ id }) => agents.find(id)?.id);
    await Promise.all(
      idle.map((one) => {
        const container = one.container?.running ? one.container.id : undefined;
        return agents.reconcile(one, container, () => devcontainers.up({ ...one, replace: false }));
      }),
    );
    if (idle.some(({ id }, i) => agents.find(id)?.id !== before[i])) this.#notifyWatchers();
  }

  #listAgentFailures(containers: readonly Container[]): string[] {
    return this.#listDevcontainers(containers).flatMap(({ id, name }) => {
      const reason = this.#options.agents?.getFailure(id);
      return reason === undefined ? [] : [`The devcontainer ${name} has no agent: ${reason}`];
    });
  }

  /** Finds the devcontainer and atomically records the operation that starts. */
  async #begin(id: string, doing: (one: FoundDevcontainer) => DevcontainerStatus): Promise<FoundDevcontainer> {
    const { devcontainers } = await this.list();
    const found = devcontainers.find((one) => one.id === id.toLowerCase());
    if (!found) throw notFound();
    const already = this.#memory.get(found.id)?.doing;
    if (already !== undefined) throw conflict(`The devcontainer is ${already} already.`);
    this.#remember(found.id, { doing: doing(found) });
    return found;
  }

  #remember(id: string, memory: Memory): void {
    this.#memory.set(id, memory);
    this.#notifyWatchers();
  }

  /** Sends changed listings to watchers, in order. */
  #notifyWatchers(): void {
    this.#notifying = this.#notifying.then(async () => {
      if (this.#watchers.size === 0) return;
      const listing = JSON.stringify(await this.list());
      if (listing === this.#last) return;
      this.#last = listing;
      for (const tell of [...this.#watchers]) tell(listing);
    });
  }

  async #listContainers(): Promise<{ containers: Container[]; warnings: string[] }> {
    try {
      return { containers: (await this.#options.engine()?.list()) ?? [], warnings: [] };
    } catch (error) {
      return { containers: [], warnings: [(error as Error).message] };
    }
  }

  #listDevcontainers(containers: readonly Container[]): FoundDevcontainer[] {
    const { directory } = this.#options;
    const declared = this.#options.declared();
    const byId = new Map<string, DevcontainerPaths & { name?: string; subagent_id?: string | null }>();
    for (const found of [...declared, ...findDevcontainers(directory), ...listDevcontainerPaths(containers)]) {
      const id = toDevcontainerId(found);
      if (!byId.has(id)) byId.set(id, found);
    }
    const taken = new Set(declared.map(({ name }) => name));
    const sorted = [...byId].sort(([, a], [, b]) => comparePaths(a, b));
    return sorted.flatMap(([id, paths]) => {
      const { workspace_folder, config_path, subagent_id = null } = paths;
      const memory = this.#memory.get(id) ?? {};
      const container = findContainer(paths, containers);
      const changed_at = readModifiedTime(config_path);
      if (memory.deleted_at !== undefined && !container && (changed_at ?? 0) <= memory.deleted_at) return [];
      const name = paths.name ?? toSafeName(workspace_folder, taken);
      taken.add(name);
      const agent = this.#options.agents?.find(id);
      return {
        id,
        name,
        workspace_folder,
        config_path,
        subagent_id,
        status: toStatus(memory, container),
        dirty: container !== undefined && (changed_at ?? 0) >= Date.parse(container.created_at) + SECOND_MS,
        ...(memory.error === undefined ? {} : { error: memory.error }),
        ...(container ? { container } : {}),
        ...(agent ? { agent } : {}),
      };
    });
  }
}

/** The engine reports times in whole seconds. */
const SECOND_MS = 1_000;

const comparePaths = (a: DevcontainerPaths, b: DevcontainerPaths): number =>
  compare(a.workspace_folder, b.workspace_folder) || compare(a.config_path, b.config_path);

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const toStatus = ({ doing, error }: Memory, container: Container | undefined): DevcontainerStatus =>
  doing ?? (error === undefined ? (container?.running ? "running" : "stopped") : "error");

/** Reports host ports that more than one container uses. */
const findPortConflicts = (containers: readonly Container[]): string[] => {
  const containersByPort = new Map<string, Set<string>>();
  for (const { name, ports } of containers) {
    for (const { host_port, network } of ports) {
      if (host_port === 0) continue;
      const key = `${host_port}/${network}`;
      containersByPort.set(key, (containersByPort.get(key) ?? new Set()).add(name));
    }
  }
  return [...containersByPort]
    .filter(([, names]) => names.size > 1)
    .map(([key, names]) => `The containers ${[...names].join(", ")} want the same port ${key} of this machine.`);
};
