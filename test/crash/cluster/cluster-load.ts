// Clients that write through all nodes continuously, record the responses, and check that every node shows acknowledged writes.
import { Client } from "#src/client.ts";
import type { NodeProcess } from "#test/support/cluster.ts";
import type { Outcome, Write } from "./cluster-oracle.ts";

const CLIENTS = 4;
/** A client's timeout for a response. */
export const CLIENT_TIMEOUT_MS = 5000;
const TOKENS = "/api/v2/users/me/keys/tokens";

export class ClusterLoad {
  readonly writes: Write[] = [];
  /** Responses that no fault explains. */
  readonly problems: string[] = [];
  acknowledged = 0;
  /** When the last write was acknowledged, and the longest gap since `resetGap` was called. */
  #acknowledgedAt = performance.now();
  #maxGapMs = 0;
  readonly #node: () => NodeProcess | undefined;
  readonly #token: string;
  #isRunning = true;
  #clients: Promise<unknown> = Promise.resolve();

  /** `node`: returns the node for the next request. */
  constructor(node: () => NodeProcess | undefined, token: string) {
    this.#node = node;
    this.#token = token;
  }

  start(): void {
    this.#clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => this.#runClient(i)));
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.#clients;
  }

  /** Starts to measure gaps between writes. */
  resetGap(): void {
    this.#acknowledgedAt = performance.now();
    this.#maxGapMs = 0;
  }

  get maxGapMs(): number {
    return this.#maxGapMs;
  }

  count(outcome: Outcome): number {
    return this.writes.filter((write) => write.outcome === outcome).length;
  }

  async #runClient(client: number): Promise<void> {
    for (let i = 0; this.#isRunning; i++) {
      const node = this.#node();
      if (!node) continue;
      const name = `w-${client}-${i}`;
      const outcome = await this.#write(node, name);
      this.writes.push({ name, outcome });
      if (outcome === "done") {
        this.#acknowledge();
        await this.#checkVisible(name);
      } else await Bun.sleep(20);
    }
  }

  #acknowledge(): void {
    const now = performance.now();
    this.#maxGapMs = Math.max(this.#maxGapMs, now - this.#acknowledgedAt);
    this.#acknowledgedAt = now;
    this.acknowledged++;
  }

  async #write(node: NodeProcess, token_name: string): Promise<Outcome> {
    const status = await this.#fetchStatus(node, "POST", TOKENS, { token_name });
    if (status === undefined) return "unknown";
    if (status < 300) return "done";
    // After a 500, the write may be stored. After a 503, it is not stored.
    if (status === 500 || status === 502 || status === 504) return "unknown";
    if (status !== 503) this.problems.push(`${token_name} received ${status} from ${node.id}`);
    return "refused";
  }

  /** Checks that a node shows the write, from its own data or from the active node, or reports that it cannot. */
  async #checkVisible(name: string): Promise<void> {
    const node = this.#node();
    const status = node && (await this.#fetchStatus(node, "GET", `${TOKENS}/${name}`));
    if (status !== undefined && status !== 200 && status < 500)
      this.problems.push(`${name} was acknowledged, and ${node?.id} answered a lookup with ${status}`);
  }

  /** Returns the status; undefined without a response. */
  async #fetchStatus(node: NodeProcess, method: string, path: string, body?: unknown): Promise<number | undefined> {
    const signal = AbortSignal.timeout(CLIENT_TIMEOUT_MS);
    try {
      const response = await new Client(node.url, this.#token).fetch(method, path, body, { signal });
      await response.body?.cancel();
      return response.status;
    } catch {
      return undefined;
    }
  }
}
