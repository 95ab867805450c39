// People of several parts who work through all nodes: their agents write lines, which are followed, their builds come and go, and some of their
// workspaces start at a time of day. Each request goes to any node.
import { Client, type ClientSocket } from "#src/client.ts";
import type { NodeProcess } from "#test/support/cluster.ts";
import { until } from "#test/support/until.ts";
import { BuildLoad, MANIFESTS } from "../oracle/build-load.ts";
import { call, insist, read } from "../oracle/calls.ts";
import { LineOracle, storedLines } from "../oracle/log-lines.ts";
import { difference, LogReader } from "../oracle/log-reader.ts";
import type { LogWriter } from "../oracle/log-writer.ts";
import { endedBuild, makeAgents, makeTemplate, makeWorkspace, makeWriters, type World } from "../server-world.ts";

const PEOPLE = 6;
const GAP_MS = 20;
const MINUTE_MS = 60_000;
/** A start by the clock may wait for a node that takes over, and for the scheduler. */
const LATE_MS = 30_000;

/** A client whose every request goes to whichever node is named next. */
class AnyNode extends Client {
  readonly #node: () => NodeProcess | undefined;

  constructor(node: () => NodeProcess | undefined, token?: string) {
    super(node()?.url ?? "http://127.0.0.1/", token);
    this.#node = node;
  }

  get #now(): Client {
    return new Client(this.#node()?.url ?? this.url, this.token);
  }

  override as(token: string | undefined): Client {
    return new AnyNode(this.#node, token);
  }

  override fetch(...asked: Parameters<Client["fetch"]>): Promise<Response> {
    return this.#now.fetch(...asked);
  }

  override socket(...asked: Parameters<Client["socket"]>): Promise<ClientSocket> {
    return this.#now.socket(...asked);
  }
}

/** A workspace that is to start by itself, once. */
type Due = { readonly id: string; readonly owner: Client; readonly at: number };

export class PartsLoad {
  readonly #writers: LogWriter[] = [];
  readonly #readers: LogReader[] = [];
  readonly #builders: BuildLoad[] = [];
  readonly #dues: Due[] = [];
  readonly #admin: Client;
  #writing: Promise<unknown>[] = [];
  #working: Promise<unknown>[] = [];

  private constructor(admin: Client) {
    this.#admin = admin;
  }

  /** `token`: of the first user. */
  static async make(node: () => NodeProcess | undefined, token: string, random: () => number): Promise<PartsLoad> {
    const admin = new AnyNode(node, token);
    const load = new PartsLoad(admin);
    const [organization] = await admin.get<{ id: string }[]>("/api/v2/users/me/organizations");
    const world: World = { admin, organization_id: organization?.id ?? "" };
    const succeeds = await makeTemplate(world, "succeeds", MANIFESTS.succeeds);
    const fails = await makeTemplate(world, "fails", MANIFESTS.fails);
    const templates = { succeeds, fails, hangs: succeeds, local: succeeds };
    for (let n = 0; n < PEOPLE; n++) {
      const owner = await person(world, n);
      const agents = await makeAgents(world, `lines-${n}`, 1, owner);
      const [writer] = await makeWriters(agents, random);
      if (!writer) throw new Error("no agent was made");
      load.#writers.push(writer);
      load.#readers.push(new LogReader(owner, writer.options.agent_id));
      load.#builders.push(
        new BuildLoad({ name: `b${n}`, admin: owner, templates, kinds: ["succeeds", "fails"], random }),
      );
      load.#dues.push(await due(owner, `due-${n}`, succeeds));
    }
    return load;
  }

  start(): void {
    this.#writing = this.#writers.map((one) => one.run(GAP_MS));
    this.#working = [...this.#readers.map((one) => one.run()), ...this.#builders.map((one) => one.run())];
  }

  /** Lines that were acknowledged so far. */
  get acknowledged(): number {
    return this.#writers.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
  }

  /** How long the agent that has waited longest waits for its lines to be taken. */
  get pause_ms(): number {
    const since = this.#writers
      .filter(({ failedAt }) => failedAt > 0)
      .map(({ failedAt }) => performance.now() - failedAt);
    return Math.max(0, ...since);
  }

  /** Lets all come to rest and says what is wrong. */
  async finish(): Promise<string[]> {
    for (const one of [...this.#writers, ...this.#builders]) one.stop();
    await Promise.all(this.#writing);
    for (const one of this.#writers) await one.settle();
    const wrong = await new LineOracle().check(this.#admin, this.#writers);
    for (const [n, reader] of this.#readers.entries()) {
      const stored = await storedLines(this.#admin, this.#writers[n]?.options.agent_id ?? "");
      await reader.seen(stored.length).catch((error) => {
        wrong.push(`${(error as Error).message}, over ${reader.connections} connections`);
      });
      wrong.push(...difference(reader.lines, stored));
      reader.stop();
    }
    await Promise.all(this.#working);
    for (const one of this.#builders) wrong.push(...(await one.check(true)));
    for (const one of this.#dues) wrong.push(...(await startsOf(one)));
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

/** A stopped workspace that starts at the minute after the next one. */
const due = async (owner: Client, name: string, template_id: string): Promise<Due> => {
  const { id } = await makeWorkspace(owner, name, template_id);
  const stop = await owner.post<{ id: string }>(`/api/v2/workspaces/${id}/builds`, { transition: "stop" });
  await endedBuild(owner, stop.id);
  const at = Math.ceil(Date.now() / MINUTE_MS + 1) * MINUTE_MS;
  const time = new Date(at);
  const schedule = `CRON_TZ=UTC ${time.getUTCMinutes()} ${time.getUTCHours()} * * *`;
  await insist(() => call(owner, "PUT", `/api/v2/workspaces/${id}/autostart`, { schedule }));
  return { id, owner, at };
};

/** What is wrong with the builds that it began by itself, once its time has come. */
const startsOf = async ({ id, owner, at }: Due): Promise<string[]> => {
  const begun = async () =>
    (await read<{ reason: string }[]>(owner, `/api/v2/workspaces/${id}/builds`)).filter(
      ({ reason }) => reason === "autostart",
    ).length;
  await until(async () => (await begun()) > 0, { patience: Math.max(0, at - Date.now()) + LATE_MS }).catch(() => {});
  const count = await begun();
  return count === 1 ? [] : [`a workspace that was to start once by itself was started ${count} times`];
};
