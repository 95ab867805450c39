// Limits the number of processes in each step of an image build, because one step could use all process IDs of the machine. The engine has
// no such limit for a build. When the build's output announces a container, this module limits the containers in the build's network.
import { log } from "#base/log.ts";
import { coalesce } from "#base/retry.ts";
import type { Engine } from "./engine.ts";
import { SHARED_NETWORK } from "./network.ts";

/** Processes and threads of one step. Compilers on a machine with many processors need several hundred. */
const MAX_PROCESSES = 4_096;
/** The line that announces a container. Steps can print such a line too, so it only causes a check. */
const CONTAINER_LINE = /^ ---> Running in [0-9a-f]{12}/m;

type Listed = { readonly Id: string; readonly Names?: readonly string[] };
type Inspected = { readonly HostConfig?: { readonly PidsLimit?: number | null } };

export class BuildSteps {
  readonly #engine: Engine;
  readonly #network: string;
  /** Starts a check of the containers. Calls during a check start only one more check. */
  readonly #requestCheck: () => void;
  /** IDs of the containers at the last check, which all have a limit. */
  #limitedIds: ReadonlySet<string> = new Set();
  #isReported = false;

  /** `network`: the build's network. */
  constructor(engine: Engine, network: string) {
    this.#engine = engine;
    this.#network = network;
    this.#requestCheck = coalesce(() => this.#limitAll().catch((error: unknown) => this.#report(error)));
  }

  /** Receives the build's output. */
  onOutput(text: string): void {
    if (CONTAINER_LINE.test(text)) this.#requestCheck();
  }

  /** Limits the containers in the network that have no limit. */
  async #limitAll(): Promise<void> {
    // The engine announces a container before it runs, so this includes stopped containers.
    const query = { all: "true", filters: JSON.stringify({ network: [this.#network] }) };
    const containers = await this.#engine.json<Listed[]>("list the steps of a build", "GET", "/containers/json", {
      query,
    });
    const limitedIds = new Set<string>();
    for (const { Id, Names = [] } of containers ?? []) {
      if (Names.some(isWorkspaceContainer)) continue;
      if (!this.#limitedIds.has(Id)) await this.#limit(Id);
      limitedIds.add(Id);
    }
    this.#limitedIds = limitedIds;
  }

  async #limit(id: string): Promise<void> {
    const path = `/containers/${id}`;
    const inspected = await this.#engine.json<Inspected>("look at a step", "GET", `${path}/json`, {
      expectedStatuses: [404],
    });
    if (!inspected || (inspected.HostConfig?.PidsLimit ?? 0) > 0) return;
    const body = { PidsLimit: MAX_PROCESSES };
    await this.#engine.json("limit a step", "POST", `${path}/update`, { body, expectedStatuses: [404, 409] });
  }

  #report(error: unknown): void {
    if (this.#isReported) return;
    this.#isReported = true;
    log("docker").warn("the processes of a build's step are not limited: {error}", { error });
  }
}

/** Returns true for a workspace's container, which has another limit. A build cannot choose the names of its containers. */
const isWorkspaceContainer = (name: string): boolean => name.startsWith(`/${SHARED_NETWORK}-`);
