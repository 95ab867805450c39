// Limits the processes of each step of an image's build: the engine takes no such limit for a build, and one step could take all process IDs
// of the machine. The containers in the build's network are limited as soon as the build's output announces one.
import { log } from "#base/log.ts";
import { coalesce } from "#base/retry.ts";
import type { Engine } from "./engine.ts";
import { SHARED_NETWORK } from "./network.ts";

/** Processes and threads of one step. Compilers on many processors need some hundred. */
const MAX_PROCESSES = 4_096;
/** A step can print such a line too, so it is only a reason to look. */
const STARTS = /^ ---> Running in [0-9a-f]{12}/m;

type Listed = { readonly Id: string; readonly Names?: readonly string[] };
type Inspected = { readonly HostConfig?: { readonly PidsLimit?: number | null } };

export class BuildSteps {
  readonly #engine: Engine;
  readonly #network: string;
  /** Asks for the containers one request at a time, however many lines a step prints. */
  readonly #requestLook: () => void;
  /** The containers of the last look, which all have a limit. */
  #limited: ReadonlySet<string> = new Set();
  #isReported = false;

  /** `network`: the one of the build. */
  constructor(engine: Engine, network: string) {
    this.#engine = engine;
    this.#network = network;
    this.#requestLook = coalesce(() => this.#limitAll().catch((error: unknown) => this.#report(error)));
  }

  /** Takes what the build prints. */
  take(text: string): void {
    if (STARTS.test(text)) this.#requestLook();
  }

  /** Limits the containers in the network that have no limit. */
  async #limitAll(): Promise<void> {
    // A container is announced before it runs.
    const query = { all: "true", filters: JSON.stringify({ network: [this.#network] }) };
    const found = await this.#engine.json<Listed[]>("list the steps of a build", "GET", "/containers/json", { query });
    const limited = new Set<string>();
    for (const { Id, Names = [] } of found ?? []) {
      if (Names.some(isOfWorkspace)) continue;
      if (!this.#limited.has(Id)) await this.#limit(Id);
      limited.add(Id);
    }
    this.#limited = limited;
  }

  async #limit(id: string): Promise<void> {
    const path = `/containers/${id}`;
    const found = await this.#engine.json<Inspected>("look at a step", "GET", `${path}/json`, {
      expectedStatuses: [404],
    });
    if (!found || (found.HostConfig?.PidsLimit ?? 0) > 0) return;
    const body = { PidsLimit: MAX_PROCESSES };
    await this.#engine.json("limit a step", "POST", `${path}/update`, { body, expectedStatuses: [404, 409] });
  }

  #report(error: unknown): void {
    if (this.#isReported) return;
    this.#isReported = true;
    log("docker").warn("the processes of a build's step are not limited: {error}", { error });
  }
}

/** A workspace's container in the shared network, which has a limit of its own. A build cannot choose the names of its containers. */
const isOfWorkspace = (name: string): boolean => name.startsWith(`/${SHARED_NETWORK}-`);
