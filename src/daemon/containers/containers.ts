// Lists the containers of the workspace and manages its devcontainers (facts/platform 5.3, rules CO-1 to CO-9). Queries the engine on every
// request; stores only operations in progress, failures and deletions.
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
  /** Undefined if there is no program to copy into containers, and for an agent that itself runs in a container of another agent. */
  agents: SubAgents | undefined;
  /** The agent's folder. */
  directory: string;
  /**
   * Returns the devcontainers that the template declares, under their declared names. Called for each listing, because a start script may
   * create the files.
   */
  declared(): readonly DeclaredDevcontainer[];
};

/** How often plain containers are polled for watchers. */
const POLL_INTERVAL_MS = 10_000;

/** State of a devcontainer in addition to what the disk and the engine report. */
type OperationState = { doing?: DevcontainerStatus; error?: string; deleted_at?: number };

export class Containers {
  readonly #options: ContainersOptions;
  readonly #memory = new Map<string, OperationState>();
  readonly #watchers = new Set<(listing: string) => void>();
  #pollTimer: Timer | undefined;
  #lastListing = "";
  #notifying: Promise<void> = Promise.resolve();
  /** IDs of the containers created by this daemon, by devcontainer ID. They are removed with the workspace. */
  readonly #createdContainers = new Map<string, string>();
  #reconcileTimer: Timer | undefined;
  #hasEnded = false;

  constructor(options: ContainersOptions) {
    this.#options = options;
  }

  /** Lists only containers that carry all `labels` (an empty value matches any); always lists devcontainers and warnings. */
  async list(labels: readonly (readonly [string, string])[] = []): Promise<FoundContainers> {
    const { containers, warnings } = await this.#listContainers();
    const hasLabels = (container: Container): boolean =>
      labels.every(([key, value]) => key in container.labels && (value === "" || container.labels[key] === value));
    return {
      containers: containers.filter(hasLabels),
      devcontainers: this.#listDevcontainers(containers),
      warnings: [...warnings, ...findPortConflicts(containers), ...this.#listAgentFailures(containers)],
    };
  }

  /** Starts the devcontainers of the template one by one. From then on, keeps an agent in each running devcontainer. */
  async begin(): Promise<void> {
    for (const { name } of this.#options.declared()) {
      if (this.#hasEnded) return;
      const { devcontainers } = await this.list();
      const found = devcontainers.find((one) => one.name === name);
      if (found)
        await this.#beginOperation(found.id, () => "starting").then(
          (one) => this.#start(one, false),
          () => {},
        );
    }
    if (this.#hasEnded || !this.#options.agents) return;
    this.#reconcileTimer = this.#options.clock.every(POLL_INTERVAL_MS, () => void this.#reconcileAgents());
    await this.#reconcileAgents();
  }

  /** Ends the agents in containers. With `remove`, also removes the containers created by this daemon. Mounted files are kept. */
  async end(remove: boolean): Promise<void> {
    this.#hasEnded = true;
    this.#reconcileTimer?.cancel();
    await this.#options.agents?.endAll();
    const engine = this.#options.engine();
    if (!remove || !engine) return;
    const { containers } = await this.#listContainers();
    await Promise.all(
      [...this.#createdContainers.values()].map((id) =>
        engine.removeWhole(containers.find((one) => one.id === id) ?? { id, labels: {} }).catch((error: unknown) => {
          log("daemon").warn("the container {id} of a devcontainer was not removed: {error}", { id, error });
        }),
      ),
    );
  }

  /** Sends listings as JSON text: one immediately, then one per change. Returns a function that stops watching. */
  watch(onListing: (listing: string) => void): () => void {
    let isFirst = true;
    const sendListing = (listing: string): void => {
      isFirst = false;
      onListing(listing);
    };
    if (this.#watchers.size === 0) this.#lastListing = "";
    this.#watchers.add(sendListing);
    this.#pollTimer ??= this.#options.clock.every(POLL_INTERVAL_MS, () => this.#notifyWatchers());
    void this.list().then((listing) => {
      if (isFirst && this.#watchers.has(sendListing)) sendListing(JSON.stringify(listing));
    });
    return () => {
      this.#watchers.delete(sendListing);
      if (this.#watchers.size > 0) return;
      this.#pollTimer?.cancel();
      this.#pollTimer = undefined;
    };
  }

  /**
   * Starts to recreate a devcontainer; the listing shows the result. Rejects with 404, with 403 for a devcontainer of the template, and
   * with 409 while another operation runs.
   */
  async recreate(id: string): Promise<void> {
    const found = await this.#beginOperation(id, ({ subagent_id }) => {
      if (subagent_id !== null) throw new AppError("forbidden", "The template made this devcontainer.");
      return "starting";
    });
    void this.#start(found, true);
  }

  /**
   * Stops and removes the container of a devcontainer. The devcontainer is not listed again until its file changes or it gets a new
   * container. Rejects with 404 or 409.
   */
  async delete(requestedId: string): Promise<void> {
    const { id, container } = await this.#beginOperation(requestedId, (one) =>
      one.container?.running ? "stopping" : "deleting",
    );
    const engine = this.#options.engine();
    try {
      await this.#options.agents?.end(id);
      this.#createdContainers.delete(id);
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

  /** Starts the container of a devcontainer and the agent in it. Never rejects: the listing shows a failure. */
  async #start(devcontainer: FoundDevcontainer, replace: boolean): Promise<void> {
    const { agents, devcontainers } = this.#options;
    try {
      await agents?.end(devcontainer.id);
      const startedContainer = await devcontainers.up({ ...devcontainer, replace });
      this.#createdContainers.set(devcontainer.id, startedContainer.container_id);
      await agents?.start(devcontainer, async () => startedContainer, startedContainer.container_id);
      this.#remember(
        devcontainer.id,
        startedContainer.problem === undefined ? {} : { error: startedContainer.problem },
      );
    } catch (error) {
      log("daemon").warn("the devcontainer {name} could not be made: {error}", { name: devcontainer.name, error });
      this.#remember(devcontainer.id, { error: error instanceof Error ? error.message : String(error) });
    }
  }

  /**
   * Starts missing agents in running devcontainers of this workspace's own folders, and ends the agents of devcontainers that do not run.
   */
  async #reconcileAgents(): Promise<void> {
    const { agents, declared, devcontainers, directory } = this.#options;
    if (!agents) return;
    const ownIds = new Set([...declared(), ...findDevcontainers(directory)].map(toDevcontainerId));
    const { devcontainers: found } = await this.list();
    const idle = found.filter(({ id }) => ownIds.has(id) && this.#memory.get(id)?.doing === undefined);
    const agentsBefore = idle.map(({ id }) => agents.find(id)?.id);
    await Promise.all(
      idle.map((one) => {
        const container = one.container?.running ? one.container.id : undefined;
        return agents.reconcile(one, container, () => devcontainers.up({ ...one, replace: false }));
      }),
    );
    if (idle.some(({ id }, i) => agents.find(id)?.id !== agentsBefore[i])) this.#notifyWatchers();
  }

  #listAgentFailures(containers: readonly Container[]): string[] {
    return this.#listDevcontainers(containers).flatMap(({ id, name }) => {
      const reason = this.#options.agents?.getFailure(id);
      return reason === undefined ? [] : [`The devcontainer ${name} has no agent: ${reason}`];
    });
  }

  /** Finds the devcontainer and records the operation that starts on it. */
  async #beginOperation(
    id: string,
    chooseOperation: (one: FoundDevcontainer) => DevcontainerStatus,
  ): Promise<FoundDevcontainer> {
    const { devcontainers } = await this.list();
    const found = devcontainers.find((one) => one.id === id.toLowerCase());
    if (!found) throw notFound();
    const operation = this.#memory.get(found.id)?.doing;
    if (operation !== undefined) throw conflict(`The devcontainer is ${operation} already.`);
    this.#remember(found.id, { doing: chooseOperation(found) });
    return found;
  }

  #remember(id: string, memory: OperationState): void {
    this.#memory.set(id, memory);
    this.#notifyWatchers();
  }

  /** Sends changed listings to watchers, in order. */
  #notifyWatchers(): void {
    this.#notifying = this.#notifying.then(async () => {
      if (this.#watchers.size === 0) return;
      const listing = JSON.stringify(await this.list());
      if (listing === this.#lastListing) return;
      this.#lastListing = listing;
      for (const onListing of [...this.#watchers]) onListing(listing);
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
    const usedNames = new Set(declared.map(({ name }) => name));
    const sorted = [...byId].sort(([, a], [, b]) => comparePaths(a, b));
    return sorted.flatMap(([id, paths]) => {
      const { workspace_folder, config_path, subagent_id = null } = paths;
      const memory = this.#memory.get(id) ?? {};
      const container = findContainer(paths, containers);
      const changed_at = readModifiedTime(config_path);
      if (memory.deleted_at !== undefined && !container && (changed_at ?? 0) <= memory.deleted_at) return [];
      const name = paths.name ?? toSafeName(workspace_folder, usedNames);
      usedNames.add(name);
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

const toStatus = ({ doing, error }: OperationState, container: Container | undefined): DevcontainerStatus =>
  doing ?? (error !== undefined ? "error" : container?.running ? "running" : "stopped");

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
