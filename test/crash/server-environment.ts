// Problems in a server's environment: its disk is full, its directory is not writable, another program locks its database. It reports them,
// loses nothing it has acknowledged, and recovers automatically (RELIABILITY check 7).
import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ENTER, SmallDisk, smallDiskSkipReason } from "./disk/small-disk.ts";
import { findDatabaseProblems } from "./oracle/database.ts";
import { listStoredLines } from "./oracle/log-lines.ts";
import { ServerPlace } from "./server.ts";
import { assertNoProblems } from "./server-crash.ts";
import { type EchoAgent, makeAgents, signInAdmin, type World } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

const PATH = "/api/v2/workspaceagents/me/logs";
/** Room for a new server and some seconds of lines. */
const MEBIBYTES = 24;
const ANSWERED_MS = 2_000;

/** An agent that writes numbered lines and records which were acknowledged. */
class Lines {
  readonly acknowledged = new Set<string>();
  readonly refused = new Set<string>();
  readonly statuses = new Map<number, string>();
  #next = 0;

  constructor(readonly agent: EchoAgent) {}

  /** Sends a line of variable size and returns its status. */
  async send(): Promise<number> {
    const output = `${this.#next++} ${"x".repeat(4_000)}`;
    const response = await this.agent.client.fetch("PATCH", PATH, { logs: [{ output }] });
    const { message = "" } = (await response.json()) as { message?: string };
    if (response.ok) this.acknowledged.add(output);
    else this.refused.add(output);
    this.statuses.set(response.status, message);
    return response.status;
  }

  /** Returns problems with what the server shows. */
  async problems({ admin }: World): Promise<string[]> {
    const shown = (await listStoredLines(admin, this.agent.agent_id)).map(({ output }) => output);
    const failures: string[] = [];
    if (new Set(shown).size !== shown.length) failures.push("a line is there twice");
    for (const output of this.acknowledged) if (!shown.includes(output)) failures.push(`lost: ${output.slice(0, 10)}`);
    for (const output of shown)
      if (this.refused.has(output)) failures.push(`refused and there: ${output.slice(0, 10)}`);
    return failures;
  }
}

/** Checks that a read is answered in time while writes fail. */
const checkReads = async ({ admin }: World): Promise<string[]> => {
  const began = performance.now();
  const response = await admin.fetch("GET", "/api/v2/users/me");
  const ms = performance.now() - began;
  return response.ok && ms < ANSWERED_MS ? [] : [`a read was answered ${response.status} after ${ms.toFixed(0)} ms`];
};

/** `rounds` times: the disk full and free again, the database locked and unlocked; then a kill on a full disk, and a restart. */
export const checkFullDisk = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerPlace.make({ isNew: true });
  await using disk = await SmallDisk.mount(place.directory, MEBIBYTES);
  const { through } = disk;
  const env = { SLIPWAY_AGENT_LOG_LIMIT: String(2 ** 30) };
  await place.start({ through, env });
  const world = await signInAdmin(place);
  const [agent] = await makeAgents(world, "full", 1);
  if (!agent) throw new Error("no agent was made");
  const lines = new Lines(agent);
  const failures: string[] = [];
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < 20; i++)
      if ((await lines.send()) !== 200) failures.push("a line was refused with room to spare");
    disk.fill();
    let status = 200;
    // First uses up the space already allocated to the log and the database.
    for (let i = 0; i < 3_000 && status === 200; i++) status = await lines.send();
    if (status !== 507) failures.push(`on a full disk a write was answered ${status}: ${lines.statuses.get(status)}`);
    for (let i = 0; i < 10; i++) {
      if ((await lines.send()) === 200) failures.push("a full disk took a line");
      failures.push(...(await checkReads(world)));
    }
    disk.free();
    if ((await lines.send()) !== 200) failures.push("with room again a write was refused");
    failures.push(...(await lines.problems(world)), ...(await checkWhileLocked(disk, lines, world)));
    log(`round ${round + 1}: ${lines.acknowledged.size} lines acknowledged, ${lines.refused.size} refused`);
  }
  disk.fill();
  for (let i = 0; i < 3_000 && (await lines.send()) === 200; i++);
  place.newest.kill("SIGKILL");
  await place.newest.ended;
  disk.free();
  const copy = join(place.scratch, "copy");
  disk.copyTo(copy);
  failures.push(...(await findDatabaseProblems(copy)));
  await place.start({ through, env });
  failures.push(...(await lines.problems(world)));
  await place.stop();
  assertNoProblems(seed, "a full disk", failures);
  const words = [...lines.statuses]
    .filter(([status]) => status !== 200)
    .map(([status, message]) => `${status} ${message}`.trim())
    .join(", ");
  return `${rounds} times full and held: ${lines.acknowledged.size} lines acknowledged, ${lines.refused.size} refused (${words}), none lost, written again without a restart`;
};

/** Another program locks the database: writes wait, reads do not, and nothing is rejected if it unlocks in time. */
const checkWhileLocked = async (disk: SmallDisk, lines: Lines, world: World): Promise<string[]> => {
  const letGo = await disk.hold();
  let done = false;
  const sending = lines.send().finally(() => {
    done = true;
  });
  const failures: string[] = [];
  for (let i = 0; i < 5; i++) failures.push(...(await checkReads(world)));
  if (done) failures.push("a write was answered while another program held the database");
  await letGo();
  if ((await sending) !== 200) failures.push("a write that waited for another program was refused");
  return failures;
};

type Refusal = (what: string, words: RegExp, through?: string[]) => Promise<void>;

/** A rejected start must give the reason in one line, and exit with 1. */
const makeRefusalCheck = (place: ServerPlace, failures: string[], log: (line: string) => void): Refusal => {
  return async (what, words, through = []) => {
    const { code, errors } = await place.spawn({ through }).ended;
    const [firstLine = "", ...more] = errors.trim().split("\n");
    log(`${what}: ${firstLine}`);
    if (code !== 1 || !words.test(firstLine) || more.length > 0)
      failures.push(`${what}: ended with ${code}: ${errors}`);
  };
};

/** A directory that is not writable is reported readably, and nothing is changed. */
export const readOnlyDirectory = async ({ seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerPlace.make({ isNew: true });
  mkdirSync(place.directory);
  const failures: string[] = [];
  const refusal = makeRefusalCheck(place, failures, log);
  const script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"';
  const through = [...ENTER, "sh", "-c", script, place.directory];
  await refusal("an empty directory that is read-only", /read-only file system/, through);
  await place.start();
  await place.stop();
  await refusal("a data directory that is read-only", /read-only file system/, through);
  failures.push(...(await findDatabaseProblems(place.directory)));
  assertNoProblems(seed, "a read-only directory", failures);
  return "an empty one and one with data: refused in one line that names it, nothing changed";
};

/** A database locked by another program at startup is waited for, then reported readably. */
export const checkLockedAtStart = async ({ seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerPlace.make();
  await place.start();
  await place.stop();
  const failures: string[] = [];
  const other = new Database(join(place.directory, "slipway.db"));
  other.run("begin immediate");
  await makeRefusalCheck(place, failures, log)("a database that another program holds", /database is locked/);
  other.run("rollback");
  other.close();
  failures.push(...(await findDatabaseProblems(place.directory)));
  await place.start();
  await signInAdmin(place);
  await place.stop();
  assertNoProblems(seed, "held at its start", failures);
  return "refused in one line after five seconds, nothing changed, started when it was free";
};

export const checks: readonly Check[] = [
  { name: "server: database held at its start", run: checkLockedAtStart },
  ...(smallDiskSkipReason() === ""
    ? [
        { name: "server: full disk", run: checkFullDisk },
        { name: "server: read-only directory", run: readOnlyDirectory },
      ]
    : []),
];
