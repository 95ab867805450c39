// Limits the processes of each step of an image's build: the engine takes no such limit for a build, and one step could take all process IDs
// of the machine. The step's container is limited as soon as the build's output names it.
import { log } from "#base/log.ts";
import type { Engine } from "./engine.ts";

/** Processes and threads of one step. Compilers on many processors need some hundred. */
const MAX_PROCESSES = 4_096;
/** Steps that are limited: a build of an engine has 127 layers at most, of which each stage has its own. */
const MAX_STEPS = 2_000;
const STARTS = /^ ---> Running in ([0-9a-f]{12,64})\s*$/;

export class BuildSteps {
  readonly #engine: Engine;
  readonly #network: string;
  readonly #seen = new Set<string>();
  #isReported = false;

  /** `network`: the one of the build. */
  constructor(engine: Engine, network: string) {
    this.#engine = engine;
    this.#network = network;
  }

  /** Takes what the build prints. */
  take(text: string): void {
    const [, id] = STARTS.exec(text) ?? [];
    if (id === undefined || this.#seen.has(id) || this.#seen.size >= MAX_STEPS) return;
    this.#seen.add(id);
    this.#limit(id).catch((error: unknown) => {
      if (this.#isReported) return;
      this.#isReported = true;
      log("docker").warn("the processes of a build's step are not limited: {error}", { error });
    });
  }

  async #limit(id: string): Promise<void> {
    type Inspected = { readonly Id: string; readonly HostConfig?: { readonly NetworkMode?: string } };
    const path = `/containers/${id}`;
    const found = await this.#engine.json<Inspected>("look at a step", "GET", `${path}/json`, { fine: [404] });
    // A step can print such a line with the ID of a container that is not of this build.
    if (found?.HostConfig?.NetworkMode !== this.#network) return;
    const body = { PidsLimit: MAX_PROCESSES };
    await this.#engine.json("limit a step", "POST", `/containers/${found.Id}/update`, { body, fine: [404, 409] });
  }
}
