// The server is killed at random moments while agents write, people build and daemons count, and restarted on the same data (RELIABILITY
// checks 1 and 19).
import { usesPostgres } from "#test/support/postgres-server.ts";
import { randomFrom } from "#test/support/random.ts";
import { BuildLoad, type Kind, MANIFESTS } from "./oracle/build-load.ts";
import { findDatabaseProblems } from "./oracle/database.ts";
import { LineOracle, listStoredLines } from "./oracle/log-lines.ts";
import { findDifferences, LogReader } from "./oracle/log-reader.ts";
import type { LogWriter } from "./oracle/log-writer.ts";
import { type ServeProcess, ServerSlot, type StartOptions } from "./server.ts";
import { CountingDaemons } from "./server-daemons.ts";
import { makeAgents, makeTemplate, makeWriters, signInAdmin, type World, withTimeout } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

/** A cluster has no local workspaces (rule CL-9), and so no daemons. */
const DAEMONS = usesPostgres ? 0 : 2;

export type LoadOptions = { agents: number; builders: number; daemons: number; gapMs?: number };

/** A server under all kinds of load, and the oracles that check it. All of it ends when disposed. */
export class Torture implements AsyncDisposable {
  /** Settings of all servers under load. */
  static readonly env = { SLIPWAY_PROVISIONER_SLOTS: "6" };
  readonly place: ServerSlot;
  readonly world: World;
  readonly writers: readonly LogWriter[];
  readonly readers: readonly LogReader[];
  readonly builders: readonly BuildLoad[];
  readonly daemons: CountingDaemons | undefined;
  readonly oracle = new LineOracle();
  readonly random: () => number;
  readonly #gapMs: number;
  #running: Promise<void>[] = [];
  /** Acknowledged calls so far. */
  acknowledged = 0;
  #waiting: { count: number; resolve(): void } | undefined;

  private constructor(parts: Pick<Torture, "place" | "world" | "random" | "daemons">, gapMs: number) {
    this.place = parts.place;
    this.world = parts.world;
    this.random = parts.random;
    this.daemons = parts.daemons;
    this.#gapMs = gapMs;
    this.writers = [];
    this.readers = [];
    this.builders = [];
  }

  /** Starts a server on a new directory and creates the load's workspaces. The load starts with `begin`. */
  static async make(seed: number, load: LoadOptions): Promise<Torture> {
    const place = await ServerSlot.make();
    try {
      await place.start({ env: Torture.env });
      const world = await signInAdmin(place);
      const daemons = load.daemons > 0 ? await CountingDaemons.start(place, world, load.daemons) : undefined;
      const created = new Torture({ place, world, random: randomFrom(seed), daemons }, load.gapMs ?? 5);
      await created.#fill(load);
      return created;
    } catch (error) {
      await place[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #fill(load: LoadOptions): Promise<void> {
    const { world, random } = this;
    const acknowledged = () => this.#recordAcknowledged();
    const agents = await makeAgents(world, "load", load.agents);
    (this.writers as LogWriter[]).push(...(await makeWriters(agents, random, acknowledged)));
    for (const { agent_id } of agents) (this.readers as LogReader[]).push(new LogReader(world.admin, agent_id));
    if (load.builders === 0) return;
    const templates = {} as Record<Kind, string>;
    for (const kind of Object.keys(MANIFESTS) as Kind[]) {
      templates[kind] = await makeTemplate(world, `load-${kind}`, MANIFESTS[kind]);
    }
    for (let i = 0; i < load.builders; i++) {
      // With daemons, the first person creates workspaces with real daemons.
      const kinds: Kind[] = load.daemons > 0 && i === 0 ? ["local"] : ["succeeds", "succeeds", "hangs", "fails"];
      const options = { name: `b${i}`, admin: world.admin, templates, kinds, random, acknowledged };
      (this.builders as BuildLoad[]).push(new BuildLoad(options));
    }
  }

  begin(): void {
    this.#running = [
      ...this.writers.map((writer) => writer.run(this.#gapMs)),
      ...this.readers.map((reader) => reader.run()),
      ...this.builders.map((builder) => builder.run()),
    ];
  }

  /** Resolves after this many more acknowledged calls. */
  async progress(count: number): Promise<void> {
    const reached = new Promise<void>((resolve) => {
      this.#waiting = { count: this.acknowledged + count, resolve };
    });
    await withTimeout(`${count} more acknowledged calls`, reached);
  }

  #recordAcknowledged(): void {
    this.acknowledged += 1;
    if (!this.#waiting || this.acknowledged < this.#waiting.count) return;
    this.#waiting.resolve();
    this.#waiting = undefined;
  }

  /** Number of writers' calls that were answered with 5xx. */
  get failures(): number {
    return this.writers.reduce((sum, { failures }) => sum + failures, 0);
  }

  restart(options: StartOptions = {}): Promise<ServeProcess> {
    return this.place.start({ ...options, env: { ...Torture.env, ...options.env } });
  }

  /** Returns the problems while the load continues. */
  async findProblems(): Promise<string[]> {
    const problems = await this.oracle.check(this.world.admin, this.writers);
    for (const builder of this.builders) problems.push(...(await builder.check()));
    return problems;
  }

  /** Lets everything finish, and returns the problems. The server must be running. */
  async finish(): Promise<string[]> {
    for (const writer of this.writers) writer.stop();
    for (const builder of this.builders) builder.stop();
    const [writing, building] = [
      this.#running.slice(0, this.writers.length),
      this.#running.slice(this.writers.length * 2),
    ];
    await withTimeout("the end of the writers", Promise.all(writing));
    await withTimeout("the end of the builders", Promise.all(building), 90_000);
    for (const writer of this.writers) await withTimeout("the last batch of a writer", writer.settle());
    const problems = await this.findProblems();
    for (const builder of this.builders) problems.push(...(await builder.check(true)));
    problems.push(...(await this.oracle.checkWhole(this.world.admin, this.writers)));
    for (const [i, reader] of this.readers.entries()) {
      const stored = await listStoredLines(this.world.admin, this.writers[i]?.options.agent_id ?? "");
      await reader.waitForLines(stored.length);
      reader.stop();
      problems.push(...findDifferences(reader.lines, stored));
    }
    await withTimeout("the end of the readers", Promise.all(this.#running));
    if (this.daemons) problems.push(...(await this.daemons.finish()));
    return [...new Set(problems)];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of [...this.writers, ...this.builders, ...this.readers]) client.stop();
    await this.place[Symbol.asyncDispose]();
  }
}

/** Throws if there are problems. The error contains the seed, to reproduce the failure. */
export const assertNoProblems = (seed: number, moment: string, problems: readonly string[]): void => {
  if (problems.length > 0) throw new Error(`seed ${seed}, ${moment}: ${problems.slice(0, 5).join("; ")}`);
};

/** Kills the server `rounds` times at random moments. Returns a one-line summary. */
export const serverCrash = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using torture = await Torture.make(seed, { agents: 4, builders: 3, daemons: DAEMONS });
  const { place, random } = torture;
  let server = place.currentProcess;
  torture.begin();
  for (let round = 1; round <= rounds; round++) {
    await torture.progress(1 + Math.floor(random() * 120));
    // Some kills happen between acknowledgments, not directly after one.
    await Bun.sleep(random() * 15);
    server.kill("SIGKILL");
    await server.ended;
    assertNoProblems(seed, `kill ${round}`, await findDatabaseProblems(place.directory));
    server = await torture.restart();
    assertNoProblems(seed, `kill ${round}`, await torture.findProblems());
    log(
      `kill ${round}: ${torture.acknowledged} calls acknowledged, ${torture.oracle.lines} lines, back in ${place.starts.at(-1)?.toFixed(0)} ms`,
    );
  }
  assertNoProblems(seed, "the end", await torture.finish());
  await torture.daemons?.remove();
  assertNoProblems(
    seed,
    "the end",
    place.processes().map((pid) => `process ${pid} of a deleted workspace is still alive`),
  );
  await place.stop();
  assertNoProblems(seed, "the end", [...(await findDatabaseProblems(place.directory)), ...place.findSlowStarts()]);
  return summarize(torture, rounds);
};

const summarize = ({ oracle, builders, daemons, readers, acknowledged, place }: Torture, rounds: number): string => {
  const builds = builders.reduce((sum, { counts }) => sum + counts.builds, 0);
  const drops = readers.reduce((sum, { connections }) => sum + connections, 0);
  const slowest = Math.max(...place.starts.slice(1), 0).toFixed(0);
  return (
    `${rounds} kills, ${acknowledged} acknowledged calls, ${oracle.lines} lines over REST, ${daemons?.lines ?? 0} by daemons, ` +
    `${builds} builds, ${drops} connections of followers, slowest restart ${slowest} ms, none lost`
  );
};

export const checks: readonly Check[] = [{ name: "server: kill -9", run: serverCrash }];
