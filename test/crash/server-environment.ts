// Problems in a server's environment: its disk is full, its directory is not writable, another program locks its database. The server
// reports them, loses nothing that it has acknowledged, and recovers automatically (RELIABILITY check 7).
import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ENTER, SmallDisk, smallDiskSkipReason } from "./disk/small-disk.ts";
import { findDatabaseProblems } from "./oracle/database.ts";
import { listStoredLines } from "./oracle/log-lines.ts";
import { ServerSlot } from "./server.ts";
import { assertNoProblems } from "./server-crash.ts";
import { type EchoAgent, makeAgents, signInAdmin, type World } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

const PATH = "/api/v2/workspaceagents/me/logs";
/** Space for a new server and some seconds of lines. */
const DISK_MIB = 24;
const MAX_READ_MS = 2_000;

/** An agent that writes numbered lines and records which were acknowledged. */
class NumberedLines {
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

  /** Returns problems with the lines that the server shows. */
  async problems({ admin }: World): Promise<string[]> {
    const shown = (await listStoredLines(admin, this.agent.agent_id)).map(({ output }) => output);
    const failures: string[] = [];
    if (new Set(shown).size !== shown.length) failures.push("a line exists twice");
    for (const output of this.acknowledged) if (!shown.includes(output)) failures.push(`lost: ${output.slice(0, 10)}`);
    for (const output of shown)
      if (this.refused.has(output)) failures.push(`refused, but stored: ${output.slice(0, 10)}`);
    return failures;
  }
}

/** Checks that a read is answered in time while writes fail. */
const checkReads = async ({ admin }: World): Promise<string[]> => {
  const startedAt = performance.now();
  const response = await admin.fetch("GET", "/api/v2/users/me");
  const ms = performance.now() - startedAt;
  return response.ok && ms < MAX_READ_MS ? [] : [`a read was answered ${response.status} after ${ms.toFixed(0)} ms`];
};

/**
 * Runs `rounds` times: the disk fills and is freed, the database is locked and unlocked. Then kills the server on a full disk, and restarts
 * it.
 */
export const checkFullDisk = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make({ isNew: true });
  await using disk = await SmallDisk.mount(place.directory, DISK_MIB);
  const { commandPrefix } = disk;
  const env = { SLIPWAY_AGENT_LOG_LIMIT: String(2 ** 30) };
  await place.start({ commandPrefix, env });
  const world = await signInAdmin(place);
  const [agent] = await makeAgents(world, "full", 1);
  if (!agent) throw new Error("no agent was made");
  const lines = new NumberedLines(agent);
  const failures: string[] = [];
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < 20; i++)
      if ((await lines.send()) !== 200) failures.push("a line was rejected before the disk was full");
    disk.fill();
    let status = 200;
    // The first lines use up the space that the log and the database already have.
    for (let i = 0; i < 3_000 && status === 200; i++) status = await lines.send();
    if (status !== 507) failures.push(`on a full disk a write was answered ${status}: ${lines.statuses.get(status)}`);
    for (let i = 0; i < 10; i++) {
      if ((await lines.send()) === 200) failures.push("a line was stored on a full disk");
      failures.push(...(await checkReads(world)));
    }
    disk.free();
    if ((await lines.send()) !== 200) failures.push("a write was rejected after space was freed");
    failures.push(...(await lines.problems(world)), ...(await checkWhileLocked(disk, lines, world)));
    log(`round ${round + 1}: ${lines.acknowledged.size} lines acknowledged, ${lines.refused.size} refused`);
  }
  disk.fill();
  for (let i = 0; i < 3_000 && (await lines.send()) === 200; i++);
  place.currentProcess.kill("SIGKILL");
  await place.currentProcess.ended;
  disk.free();
  const copy = join(place.scratch, "copy");
  disk.copyTo(copy);
  failures.push(...(await findDatabaseProblems(copy)));
  await place.start({ commandPrefix, env });
  failures.push(...(await lines.problems(world)));
  await place.stop();
  assertNoProblems(seed, "a full disk", failures);
  const responses = [...lines.statuses]
    .filter(([status]) => status !== 200)
    .map(([status, message]) => `${status} ${message}`.trim())
    .join(", ");
  return `${rounds} times full and locked: ${lines.acknowledged.size} lines acknowledged, ${lines.refused.size} refused (${responses}), none lost, writes continued without a restart`;
};

/** Another program locks the database: writes wait, reads do not, and nothing is rejected if it unlocks in time. */
const checkWhileLocked = async (disk: SmallDisk, lines: NumberedLines, world: World): Promise<string[]> => {
  const unlock = await disk.hold();
  let isAnswered = false;
  const sending = lines.send().finally(() => {
    isAnswered = true;
  });
  const failures: string[] = [];
  for (let i = 0; i < 5; i++) failures.push(...(await checkReads(world)));
  if (isAnswered) failures.push("a write was answered while another program locked the database");
  await unlock();
  if ((await sending) !== 200) failures.push("a write that waited for the other program was rejected");
  return failures;
};

type CheckRefusal = (situation: string, pattern: RegExp, commandPrefix?: string[]) => Promise<void>;

/** Returns a check of a start that must fail: it must give the reason in one line, and exit with 1. */
const makeRefusalCheck = (place: ServerSlot, failures: string[], log: (line: string) => void): CheckRefusal => {
  return async (situation, pattern, commandPrefix = []) => {
    const { code, errors } = await place.spawn({ commandPrefix }).ended;
    const [firstLine = "", ...otherLines] = errors.trim().split("\n");
    log(`${situation}: ${firstLine}`);
    if (code !== 1 || !pattern.test(firstLine) || otherLines.length > 0)
      failures.push(`${situation}: ended with ${code}: ${errors}`);
  };
};

/** Checks that a start on a read-only directory fails with a readable message and changes nothing. */
export const readOnlyDirectory = async ({ seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make({ isNew: true });
  mkdirSync(place.directory);
  const failures: string[] = [];
  const checkRefusal = makeRefusalCheck(place, failures, log);
  const script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"';
  const commandPrefix = [...ENTER, "sh", "-c", script, place.directory];
  await checkRefusal("an empty directory that is read-only", /read-only file system/, commandPrefix);
  await place.start();
  await place.stop();
  await checkRefusal("a data directory that is read-only", /read-only file system/, commandPrefix);
  failures.push(...(await findDatabaseProblems(place.directory)));
  assertNoProblems(seed, "a read-only directory", failures);
  return "an empty directory and one with data: rejected in one line that gives the reason, nothing changed";
};

/** Checks that a start waits for a database that another program locks, and then fails with a readable message. */
export const checkLockedAtStart = async ({ seed, log }: CheckOptions): Promise<string> => {
  await using place = await ServerSlot.make();
  await place.start();
  await place.stop();
  const failures: string[] = [];
  const otherConnection = new Database(join(place.directory, "slipway.db"));
  otherConnection.run("begin immediate");
  await makeRefusalCheck(place, failures, log)("a database that another program locks", /database is locked/);
  otherConnection.run("rollback");
  otherConnection.close();
  failures.push(...(await findDatabaseProblems(place.directory)));
  await place.start();
  await signInAdmin(place);
  await place.stop();
  assertNoProblems(seed, "locked at the start", failures);
  return "rejected in one line after five seconds, nothing changed, started when it was unlocked";
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
