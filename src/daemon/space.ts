// Watches memory and the disk space of the workspace's home. Reports changes to the server; also writes out-of-memory kills and a full home
// to the agent's log. A full disk does not stop the daemon, which skips the files that it cannot write.
import { statfs } from "node:fs/promises";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { findSpaceLevel, type SpaceLevel } from "#schema/agents/resources.ts";
import { type Connection, DaemonStopped } from "./connection/connection.ts";
import type { Memory } from "./memory-kills.ts";
import { type Logs, OWN_SOURCE } from "./scripts/logs.ts";
import { toTimestamp } from "./times.ts";

export type SpaceOptions = {
  readonly connection: Pick<Connection, "ask">;
  readonly logs: Pick<Logs, "getSource">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly home: string;
  /** Names of processes killed for memory since the last call, and memory at that time. */
  readonly kills: { takeKilled(): string[]; readonly memory: Memory | undefined };
};

type Volume = { readonly used: number; readonly total: number };
type Kill = { readonly process: string; readonly at: number };

const POLL_INTERVAL_MS = 1_000;
/** Disk space is read on every other check. */
const CHECKS_PER_SPACE_CHECK = 2;
/** Minimum time between reports of changed amounts. */
const REPORT_INTERVAL_MS = 60_000;
const MIN_CHANGE_SHARE = 0.01;
/** Maximum number of kills kept while the server is unreachable; only the newest are reported. */
const MAX_KILLS = 20;

/** Checks every second and reports changes until the signal fires. Never throws. */
export const watchSpace = async (options: SpaceOptions): Promise<void> => {
  const { clock, signal, home, kills } = options;
  const killed: Kill[] = [];
  let space: Volume | undefined;
  let level: SpaceLevel = "ok";
  let reported:
    | { readonly space: Volume | undefined; readonly memory: Memory | undefined; readonly at: number }
    | undefined;
  let isReporting = false;
  for (let checkCount = 0; !signal.aborted; checkCount++) {
    for (const process of kills.takeKilled()) {
      killed.push({ process, at: clock.now() });
      warnOwner(options, `Out of memory: the kernel killed ${process || "a process"}.`);
    }
    killed.splice(0, killed.length - MAX_KILLS);
    if (checkCount % CHECKS_PER_SPACE_CHECK === 0) space = await readSpace(home);
    const nextLevel: SpaceLevel = space ? findSpaceLevel(space, level) : "ok";
    if (nextLevel === "full" && level !== "full") warnOwner(options, `The disk of ${home} is full: free some space.`);
    const { memory } = kills;
    const isDue =
      killed.length > 0 ||
      nextLevel !== level ||
      reported === undefined ||
      (clock.monotonic() - reported.at >= REPORT_INTERVAL_MS &&
        (hasChanged(space, reported.space) || hasChanged(memory, reported.memory)));
    level = nextLevel;
    if (isDue && !isReporting && (space || memory)) {
      isReporting = true;
      reported = { space, memory, at: clock.monotonic() };
      void report(options, { space, memory, killed: killed.splice(0) }).finally(() => {
        isReporting = false;
      });
    }
    await pause(clock, POLL_INTERVAL_MS, signal);
  }
};

const hasChanged = (a: Volume | undefined, b: Volume | undefined): boolean =>
  a?.total !== b?.total || Math.abs((a?.used ?? 0) - (b?.used ?? 0)) >= MIN_CHANGE_SHARE * (a?.total ?? 0);

/** Returns used and total space, excluding space reserved for root; undefined if the folder cannot be read. */
const readSpace = async (home: string): Promise<Volume | undefined> => {
  try {
    const { blocks, bfree, bavail, bsize } = await statfs(home);
    const used = (blocks - bfree) * bsize;
    return blocks > 0 ? { used, total: used + bavail * bsize } : undefined;
  } catch {
    return undefined;
  }
};

const warnOwner = ({ logs, clock }: SpaceOptions, output: string): void => {
  log("daemon").warn("{output}", { output });
  logs.getSource(OWN_SOURCE).add({ at: clock.now(), level: "error", output });
};

const report = async (
  { connection, clock, home }: SpaceOptions,
  { space, memory, killed }: { space: Volume | undefined; memory: Memory | undefined; killed: readonly Kill[] },
): Promise<void> => {
  const toAmounts = ({ used, total }: Volume) => ({ used: BigInt(used), total: BigInt(total) });
  const datapoint = {
    collectedAt: toTimestamp(clock.now()),
    ...(memory ? { memory: toAmounts(memory) } : {}),
    volumes: space ? [Object.assign(toAmounts(space), { volume: home })] : [],
    memoryKills: killed.map(({ process, at }) => ({ process, killedAt: toTimestamp(at) })),
  };
  try {
    await connection.ask((api, abort) => api.pushResourcesMonitoringUsage({ datapoints: [datapoint] }, abort));
  } catch (error) {
    if (!(error instanceof DaemonStopped))
      log("daemon").warn("the server refused a report of memory and disk space: {error}", { error });
  }
};
