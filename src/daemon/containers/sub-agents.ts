// Manages the agents in devcontainers, one per running devcontainer: registers them with the server, installs them in the container, and
// ends them when the container ends. Their tokens exist only in this process, so agents of an earlier process are deleted at startup.
import type { Clock } from "#base/clock.ts";
import { uuidFromBytes, uuidToBytes } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { RpcError } from "#src/wire/index.ts";
import type { Connection } from "../connection/connection.ts";
import type { RunningDevcontainer } from "./devcontainers-cli.ts";
import type { ContainerEngine } from "./engine.ts";
import { isExecRunning } from "./exec.ts";
import { type InjectedAgent, injectAgent, removeAgent } from "./injection.ts";

export type SubAgentsOptions = {
  clock: Clock;
  connection: Pick<Connection, "ask">;
  /** The server's URL as this machine reaches it. */
  url: URL;
  engine(): ContainerEngine | undefined;
  /** The compiled program that is copied into containers. */
  program: string;
};

export type SubAgent = { id: string; name: string; directory: string };

type Running = { agent: SubAgent; container: string; user: string; injected: InjectedAgent };
type Failure = { container: string; reason: string; at: number };

/** How long to wait before retrying in a container where starting failed. */
const RETRY_MS = 60_000;
/** The protocol's enum values: vscode, web_terminal, ssh_helper, port_forwarding_helper. */
const DISPLAY_APPS = [0, 2, 3, 4];
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };
const MAX_NAME_ATTEMPTS = 5;

export class SubAgents {
  readonly #options: SubAgentsOptions;
  readonly #running = new Map<string, Running>();
  /** All agents created by this process. */
  readonly #createdIds = new Set<string>();
  readonly #failures = new Map<string, Failure>();
  /** Serializes operations for each devcontainer. */
  readonly #queues = new Map<string, Promise<void>>();
  readonly #startup: Promise<void>;

  constructor(options: SubAgentsOptions) {
    this.#options = options;
    this.#startup = this.#deleteUnknown().catch((error: unknown) => {
      log("daemon").warn("agents of earlier devcontainers were not deleted: {error}", { error });
    });
  }

  /** Returns the IDs of all agents that this process created and has not deleted. */
  listCreated(): readonly string[] {
    return [...this.#createdIds];
  }

  /** Returns the agent in this devcontainer. */
  find(devcontainer: string): SubAgent | undefined {
    return this.#running.get(devcontainer)?.agent;
  }

  /** Returns why the devcontainer has no agent. */
  getFailure(devcontainer: string): string | undefined {
    return this.#failures.get(devcontainer)?.reason;
  }

  /** Starts an agent in the container that `up` returns, replacing the previous one. Never rejects: see `getFailure`. */
  start(
    devcontainer: { id: string; name: string },
    up: () => Promise<RunningDevcontainer>,
    container = "",
  ): Promise<void> {
    return this.#enqueue(devcontainer.id, async () => {
      await this.#end(devcontainer.id);
      this.#failures.delete(devcontainer.id);
      try {
        this.#running.set(devcontainer.id, await this.#create(devcontainer.name, await up()));
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        log("daemon").warn("the devcontainer {name} has no agent: {reason}", { name: devcontainer.name, reason });
        this.#failures.set(devcontainer.id, { container, reason, at: this.#options.clock.monotonic() });
      }
    });
  }

  /** Starts an agent if `container` runs without one; ends the agent of a container that no longer runs. */
  async reconcile(
    devcontainer: { id: string; name: string },
    container: string | undefined,
    up: () => Promise<RunningDevcontainer>,
  ): Promise<void> {
    const { clock, engine } = this.#options;
    if (this.#queues.has(devcontainer.id)) return;
    const running = this.#running.get(devcontainer.id);
    if (container === undefined) return running ? this.end(devcontainer.id) : undefined;
    if (running?.container === container) {
      const containerEngine = engine();
      if (!containerEngine || (await isExecRunning(containerEngine, running.injected.exec).catch(() => true))) return;
    }
    const failure = this.#failures.get(devcontainer.id);
    if (failure?.container === container && clock.monotonic() - failure.at < RETRY_MS) return;
    await this.start(devcontainer, up, container);
  }

  /** Ends the agent of this devcontainer. */
  end(devcontainer: string): Promise<void> {
    return this.#enqueue(devcontainer, async () => {
      this.#failures.delete(devcontainer);
      await this.#end(devcontainer);
    });
  }

  /**
   * Ends agents that the server has deleted. The server deletes agents that are not connected when someone loses access (rule AG-28). The
   * next call of `reconcile` starts new ones. Never rejects.
   */
  async endDeleted(): Promise<void> {
    try {
      await Promise.all(this.#queues.values());
      const running = [...this.#running];
      const { agents } = await this.#options.connection.ask((api, signal) => api.listSubAgents({}, signal));
      const existingIds = new Set(agents.map(({ id }) => uuidFromBytes(id)));
      const deleted = running.filter(([, { agent }]) => !existingIds.has(agent.id));
      await Promise.all(deleted.map(([devcontainer]) => this.end(devcontainer)));
    } catch (error) {
      log("daemon").warn("agents that the server has deleted were not ended: {error}", { error });
    }
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((id) => this.end(id)));
  }

  #enqueue(devcontainer: string, work: () => Promise<void>): Promise<void> {
    const operation = (this.#queues.get(devcontainer) ?? this.#startup).then(work).finally(() => {
      if (this.#queues.get(devcontainer) === operation) this.#queues.delete(devcontainer);
    });
    this.#queues.set(devcontainer, operation);
    return operation;
  }

  async #create(wantedName: string, created: RunningDevcontainer): Promise<Running> {
    const { clock, engine: getEngine, program, url } = this.#options;
    const engine = getEngine();
    if (!engine) throw new Error("The workspace has no container engine.");
    const { id, name, token } = await this.#register(wantedName, created.remote_folder);
    const { container_id: container, remote_user: user, remote_folder: directory } = created;
    try {
      const env = created.remote_env;
      const injected = await injectAgent({ engine, clock, program, server: url, container, user, token, env });
      return { agent: { id, name, directory }, container, user, injected };
    } catch (error) {
      await this.#delete(id);
      throw error;
    }
  }

  /**
   * Registers the agent with the server. Agents with the same name that this process does not know are deleted first, because an earlier
   * attempt may have created them.
   */
  async #register(wantedName: string, directory: string): Promise<{ id: string; name: string; token: string }> {
    for (let n = 1; ; n += 1) {
      const name = n === 1 ? wantedName : `${wantedName}-${n}`;
      await this.#deleteUnknown(name);
      try {
        const { agent } = await this.#options.connection.ask((api, signal) =>
          api.createSubAgent(
            {
              name,
              directory,
              displayApps: DISPLAY_APPS,
              architecture: ARCHITECTURES[process.arch] ?? process.arch,
              operatingSystem: "linux",
            },
            signal,
          ),
        );
        if (!agent) throw new Error("The server made no agent.");
        const id = uuidFromBytes(agent.id);
        this.#createdIds.add(id);
        return { id, name: agent.name, token: uuidFromBytes(agent.authToken) };
      } catch (error) {
        if (!(error instanceof RpcError) || n === MAX_NAME_ATTEMPTS || !/already/.test(error.message)) throw error;
      }
    }
  }

  /** Deletes the agents in devcontainers that this process did not create: all of them, or only the one with this name. */
  async #deleteUnknown(only?: string): Promise<void> {
    const { agents } = await this.#options.connection.ask((api, signal) => api.listSubAgents({}, signal));
    for (const { id, name } of agents) {
      if (this.#createdIds.has(uuidFromBytes(id)) || (only !== undefined && name.toLowerCase() !== only.toLowerCase()))
        continue;
      await this.#delete(uuidFromBytes(id));
    }
  }

  async #end(devcontainer: string): Promise<void> {
    const running = this.#running.get(devcontainer);
    if (!running) return;
    this.#running.delete(devcontainer);
    const engine = this.#options.engine();
    await this.#delete(running.agent.id);
    if (engine) await removeAgent({ ...running, engine, clock: this.#options.clock }, running.injected);
  }

  async #delete(id: string): Promise<void> {
    this.#createdIds.delete(id);
    try {
      await this.#options.connection.ask((api, signal) => api.deleteSubAgent({ id: uuidToBytes(id) }, signal));
    } catch (error) {
      log("daemon").debug("the agent {id} was not deleted: {error}", { id, error });
    }
  }
}
