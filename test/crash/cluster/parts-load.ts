// People of several parts who work through all nodes: their agents write lines, which are followed, their builds come and go, and some of their
// workspaces start at a time of day. Each request goes to any node.
import { Client, type ClientSocket } from "#src/client.ts";
import type { NodeProcess } from "#test/support/cluster.ts";
import { BuildLoad, MANIFESTS } from "../oracle/build-load.ts";
import { LineOracle, storedLines } from "../oracle/log-lines.ts";
import { difference, LogReader } from "../oracle/log-reader.ts";
import type { LogWriter } from "../oracle/log-writer.ts";
import { makeAgents, makeTemplate, makeWriters, type World } from "../server-world.ts";
import { CLIENT_MS } from "./cluster-load.ts";
import { Dues } from "./dues.ts";

const PEOPLE = 6;
/** Of each agent's lines, every one at any node. */
const FOLLOWERS = 4;
const GAP_MS = 20;
/** Before there are faults nobody has to notice that a node is silent. */
const SET_UP_MS = 60_000;
/** For another node, where all are named by chance. */
const MAX_TRIES = 20;

/** How long clients wait for an answer. */
type Patience = { ms: number };

/** A client whose every request goes to whichever node is named next, but not twice in a row to one that did not answer. */
class AnyNode extends Client {
  readonly #node: () => NodeProcess | undefined;
  readonly #patience: Patience;
  #silent: NodeProcess | undefined;

  constructor(node: () => NodeProcess | undefined, patience: Patience, token?: string) {
    super(node()?.url ?? "http://127.0.0.1/", token);
    this.#node = node;
    this.#patience = patience;
  }

  override as(token: string | undefined): Client {
    return new AnyNode(this.#node, this.#patience, token);
  }

  /** Where packets vanish only a client's patience tells. */
  override async fetch(...[method, path, body, options = {}]: Parameters<Client["fetch"]>): Promise<Response> {
    const node = this.#next();
    const late = AbortSignal.timeout(this.#patience.ms);
    const signal = options.signal ? AbortSignal.any([options.signal, late]) : late;
    this.#silent = node;
    const answer = await this.#at(node).fetch(method, path, body, { ...options, signal });
    this.#silent = undefined;
    return answer;
  }

  override socket(...asked: Parameters<Client["socket"]>): Promise<ClientSocket> {
    return this.#at(this.#next()).socket(...asked);
  }

  #next(): NodeProcess | undefined {
    for (let tries = 0; ; tries++) {
      const node = this.#node();
      if (node !== this.#silent || tries === MAX_TRIES) return node;
    }
  }

  #at(node: NodeProcess | undefined): Client {
    return new Client(node?.url ?? this.url, this.token);
  }
}

/** Lines that were acknowledged, connections of those who follow them, builds, and starts by the clock. */
export type PartsCounts = Readonly<Record<"lines" | "connections" | "builds" | "starts", number>>;

export class PartsLoad {
  readonly #writers: LogWriter[] = [];
  readonly #readers: (readonly LogReader[])[] = [];
  readonly #builders: BuildLoad[] = [];
  readonly #dues: Dues[] = [];
  readonly #admin: Client;
  /** When each agent's lines were taken last, and the longest that one has waited since all are watched. */
  readonly #taken_at: number[] = [];
  readonly #taken: number[] = [];
  #longest_ms = 0;
  #writing: Promise<unknown>[] = [];
  #working: Promise<unknown>[] = [];

  readonly #patience: Patience;

  private constructor(admin: Client, patience: Patience) {
    this.#admin = admin;
    this.#patience = patience;
  }

  /** `token`: of the first user; `minutes`: for how long workspaces start on their own. */
  static async make(
    node: () => NodeProcess | undefined,
    { token, random, minutes }: { token: string; random: () => number; minutes: number },
  ): Promise<PartsLoad> {
    const patience = { ms: SET_UP_MS };
    const admin = new AnyNode(node, patience, token);
    const load = new PartsLoad(admin, patience);
    const [organization] = await admin.get<{ id: string }[]>("/api/v2/users/me/organizations");
    const world: World = { admin, organization_id: organization?.id ?? "" };
    const succeeds = await makeTemplate(world, "succeeds", MANIFESTS.succeeds);
    const fails = await makeTemplate(world, "fails", MANIFESTS.fails);
    const templates = { succeeds, fails, hangs: succeeds, local: succeeds };
    for (let n = 0; n < PEOPLE; n++) {
      const owner = await person(world, n);
      const agents = await makeAgents(world, `lines-${n}`, 1, owner);
      const [writer] = await makeWriters(agents, random, () => load.#take(n));
      if (!writer) throw new Error("no agent was made");
      load.#writers.push(writer);
      load.#readers.push(Array.from({ length: FOLLOWERS }, () => new LogReader(owner, writer.options.agent_id)));
      load.#builders.push(
        new BuildLoad({ name: `b${n}`, admin: owner, templates, kinds: ["succeeds", "fails"], random }),
      );
      load.#dues.push(await Dues.make(owner, succeeds, minutes));
    }
    for (const one of load.#dues) await one.begin();
    return load;
  }

  start(): void {
    this.#patience.ms = CLIENT_MS;
    this.#writing = this.#writers.map((one) => one.run(GAP_MS));
    this.#working = [...this.#readers.flat(), ...this.#builders].map((one) => one.run());
    this.watch();
  }

  /** Watches from now on how long agents wait for their lines to be taken. */
  watch(): void {
    this.#longest_ms = 0;
    for (const n of this.#writers.keys()) {
      this.#taken_at[n] = performance.now();
      this.#taken[n] = 0;
    }
  }

  /** The longest that one has waited since then. */
  get longest_ms(): number {
    return this.#longest_ms;
  }

  #take(n: number): void {
    const now = performance.now();
    this.#longest_ms = Math.max(this.#longest_ms, now - (this.#taken_at[n] ?? now));
    this.#taken_at[n] = now;
    this.#taken[n] = (this.#taken[n] ?? 0) + 1;
  }

  /** What was done and looked at. */
  get counts(): PartsCounts {
    const sum = <T>(all: readonly T[], of: (one: T) => number): number => all.reduce((so, one) => so + of(one), 0);
    return {
      lines: sum(this.#writers, ({ acknowledged }) => acknowledged),
      connections: sum(this.#readers.flat(), ({ connections }) => connections),
      builds: sum(this.#builders, ({ counts }) => counts.builds),
      starts: sum(this.#dues, ({ begun }) => begun),
    };
  }

  /** Whether lines of each agent were taken since then: twice, as the first may have been sent before. */
  get isTaken(): boolean {
    return this.#taken.every((times) => times >= 2);
  }

  /** Lets all come to rest and says what is wrong. */
  async finish(): Promise<string[]> {
    for (const one of [...this.#writers, ...this.#builders]) one.stop();
    await Promise.all(this.#writing);
    for (const one of this.#writers) await one.settle();
    const wrong = await new LineOracle().check(this.#admin, this.#writers);
    for (const [n, readers] of this.#readers.entries()) {
      const stored = await storedLines(this.#admin, this.#writers[n]?.options.agent_id ?? "");
      for (const reader of readers) {
        await reader.seen(stored.length).catch((error) => {
          wrong.push(`${(error as Error).message}, over ${reader.connections} connections`);
        });
        wrong.push(...difference(reader.lines, stored));
        reader.stop();
      }
    }
    await Promise.all(this.#working);
    for (const one of this.#builders) wrong.push(...(await one.check(true)));
    for (const one of this.#dues) wrong.push(...(await one.check()));
    return wrong;
  }
}

/** A user of a part of its own, with a client that asks any node. */
const person = async ({ admin, organization_id }: World, n: number): Promise<Client> => {
  const [username, password] = [`person-${n}`, `of person ${n}, ${crypto.randomUUID()}`];
  const email = `${username}@example.com`;
  const account = { email, username, password, login_type: "password", organization_ids: [organization_id] };
  await admin.post<unknown>("/api/v2/users", account);
  return await admin.as(undefined).signIn(email, password);
};
