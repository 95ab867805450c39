// People in several shards who use all nodes: their agents write lines, which are followed, they build workspaces, and some of their
// workspaces have autostart. Each request goes to any node.
import { Client, type ClientSocket } from "#src/client.ts";
import type { NodeProcess } from "#test/support/cluster.ts";
import { BuildLoad, MANIFESTS } from "../oracle/build-load.ts";
import { LineOracle, listStoredLines } from "../oracle/log-lines.ts";
import { findDifferences, LogReader } from "../oracle/log-reader.ts";
import type { LogWriter } from "../oracle/log-writer.ts";
import { makeAgents, makeTemplate, makeWriters, type World } from "../server-world.ts";
import { AutostartCheck } from "./autostart-check.ts";
import { CLIENT_TIMEOUT_MS } from "./cluster-load.ts";

const PEOPLE = 6;
/** Followers of each agent's lines. Each can be connected to any node. */
const FOLLOWERS = 4;
const GAP_MS = 20;
/** The clients' timeout before the first fault, when they need not detect silent nodes. */
const SETUP_TIMEOUT_MS = 60_000;
/** Maximum number of attempts to reach another node at random. */
const MAX_TRIES = 20;

/** The clients' timeout for a response. */
type Patience = { ms: number };

/** A client that sends every request to a random node, but not twice in a row to a node that did not respond. */
class RandomNodeClient extends Client {
  readonly #node: () => NodeProcess | undefined;
  readonly #patience: Patience;
  #silent: NodeProcess | undefined;

  constructor(node: () => NodeProcess | undefined, patience: Patience, token?: string) {
    super(node()?.url ?? "http://127.0.0.1/", token);
    this.#node = node;
    this.#patience = patience;
  }

  override withToken(token: string | undefined): Client {
    return new RandomNodeClient(this.#node, this.#patience, token);
  }

  /** If packets are dropped, only the client's timeout detects it. */
  override async fetch(...[method, path, body, options = {}]: Parameters<Client["fetch"]>): Promise<Response> {
    const node = this.#nextNode();
    const timeout = AbortSignal.timeout(this.#patience.ms);
    const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
    this.#silent = node;
    const response = await this.#clientFor(node).fetch(method, path, body, { ...options, signal });
    this.#silent = undefined;
    return response;
  }

  override socket(...args: Parameters<Client["socket"]>): Promise<ClientSocket> {
    return this.#clientFor(this.#nextNode()).socket(...args);
  }

  #nextNode(): NodeProcess | undefined {
    for (let tries = 0; ; tries++) {
      const node = this.#node();
      if (node !== this.#silent || tries === MAX_TRIES) return node;
    }
  }

  #clientFor(node: NodeProcess | undefined): Client {
    return new Client(node?.url ?? this.url, this.token);
  }
}

/** Numbers of acknowledged lines, connections of their followers, builds, and autostarts. */
export type ShardsCounts = Readonly<Record<"lines" | "connections" | "builds" | "starts", number>>;

export class ShardsLoad {
  readonly #writers: LogWriter[] = [];
  readonly #readers: (readonly LogReader[])[] = [];
  readonly #builders: BuildLoad[] = [];
  readonly #autostarts: AutostartCheck[] = [];
  readonly #admin: Client;
  /** When each agent's lines were last accepted, how often, and the longest wait since `resetGap` was called. */
  readonly #acceptedAt: number[] = [];
  readonly #acceptedCounts: number[] = [];
  #maxWaitMs = 0;
  #writing: Promise<unknown>[] = [];
  #working: Promise<unknown>[] = [];

  readonly #patience: Patience;

  private constructor(admin: Client, patience: Patience) {
    this.#admin = admin;
    this.#patience = patience;
  }

  /** `token`: the first user's; `minutes`: how many workspaces per person have autostart, one each minute. */
  static async make(
    node: () => NodeProcess | undefined,
    { token, random, minutes }: { token: string; random: () => number; minutes: number },
  ): Promise<ShardsLoad> {
    const patience = { ms: SETUP_TIMEOUT_MS };
    const admin = new RandomNodeClient(node, patience, token);
    const load = new ShardsLoad(admin, patience);
    const [organization] = await admin.get<{ id: string }[]>("/api/v2/users/me/organizations");
    const world: World = { admin, organization_id: organization?.id ?? "" };
    const succeeds = await makeTemplate(world, "succeeds", MANIFESTS.succeeds);
    const fails = await makeTemplate(world, "fails", MANIFESTS.fails);
    const templates = { succeeds, fails, hangs: succeeds, local: succeeds };
    for (let n = 0; n < PEOPLE; n++) {
      const owner = await createPerson(world, n);
      const agents = await makeAgents(world, `lines-${n}`, 1, owner);
      const [writer] = await makeWriters(agents, random, () => load.#recordAccepted(n));
      if (!writer) throw new Error("no agent was made");
      load.#writers.push(writer);
      load.#readers.push(Array.from({ length: FOLLOWERS }, () => new LogReader(owner, writer.options.agent_id)));
      load.#builders.push(
        new BuildLoad({ name: `b${n}`, admin: owner, templates, kinds: ["succeeds", "fails"], random }),
      );
      load.#autostarts.push(await AutostartCheck.make(owner, succeeds, minutes));
    }
    for (const autostart of load.#autostarts) await autostart.begin();
    return load;
  }

  start(): void {
    this.#patience.ms = CLIENT_TIMEOUT_MS;
    this.#writing = this.#writers.map((writer) => writer.run(GAP_MS));
    this.#working = [...this.#readers.flat(), ...this.#builders].map((client) => client.run());
    this.resetGap();
  }

  /** Starts to measure how long agents wait for their lines to be accepted. */
  resetGap(): void {
    this.#maxWaitMs = 0;
    for (const n of this.#writers.keys()) {
      this.#acceptedAt[n] = performance.now();
      this.#acceptedCounts[n] = 0;
    }
  }

  /** The longest wait since `resetGap` was called. */
  get maxWaitMs(): number {
    return this.#maxWaitMs;
  }

  #recordAccepted(n: number): void {
    const now = performance.now();
    this.#maxWaitMs = Math.max(this.#maxWaitMs, now - (this.#acceptedAt[n] ?? now));
    this.#acceptedAt[n] = now;
    this.#acceptedCounts[n] = (this.#acceptedCounts[n] ?? 0) + 1;
  }

  /** The totals. */
  get counts(): ShardsCounts {
    const sum = <T>(items: readonly T[], getNumber: (item: T) => number): number =>
      items.reduce((total, item) => total + getNumber(item), 0);
    return {
      lines: sum(this.#writers, ({ acknowledged }) => acknowledged),
      connections: sum(this.#readers.flat(), ({ connections }) => connections),
      builds: sum(this.#builders, ({ counts }) => counts.builds),
      starts: sum(this.#autostarts, ({ startCount }) => startCount),
    };
  }

  /** Returns true if lines of each agent were accepted twice since `resetGap` was called. The first may have been sent before. */
  get hasAcceptedAll(): boolean {
    return this.#acceptedCounts.every((times) => times >= 2);
  }

  /** Waits until everything is idle and returns the problems. */
  async finish(): Promise<string[]> {
    for (const client of [...this.#writers, ...this.#builders]) client.stop();
    await Promise.all(this.#writing);
    for (const writer of this.#writers) await writer.settle();
    const problems = await new LineOracle().check(this.#admin, this.#writers);
    for (const [n, readers] of this.#readers.entries()) {
      const stored = await listStoredLines(this.#admin, this.#writers[n]?.options.agent_id ?? "");
      for (const reader of readers) {
        await reader.waitForLines(stored.length).catch((error) => {
          problems.push(`${(error as Error).message}, over ${reader.connections} connections`);
        });
        problems.push(...findDifferences(reader.lines, stored));
        reader.stop();
      }
    }
    await Promise.all(this.#working);
    for (const builder of this.#builders) problems.push(...(await builder.check(true)));
    for (const autostart of this.#autostarts) problems.push(...(await autostart.check()));
    return problems;
  }
}

/** Creates a user in a separate shard. Returns a client that calls any node. */
const createPerson = async ({ admin, organization_id }: World, n: number): Promise<Client> => {
  const [username, password] = [`person-${n}`, `of person ${n}, ${crypto.randomUUID()}`];
  const email = `${username}@example.com`;
  const account = { email, username, password, login_type: "password", organization_ids: [organization_id] };
  await admin.post<unknown>("/api/v2/users", account);
  return await admin.withToken(undefined).signIn(email, password);
};
