// Nodes of a cluster that are paused in the middle of a commit, whose clocks are wrong, and that are replaced by the next version.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { type NodeProcess, startCluster } from "#test/support/cluster.ts";
import { needs } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { randomFrom } from "#test/support/random.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { type TortureResult, tortureRounds } from "./rounds.ts";
import { FAULTS, torture } from "./server-cluster.ts";

/** How long a node is paused between its guard and its COMMIT. The database ends the transaction after 2 s. */
const PAUSES_MS: Readonly<Record<string, number>> = {
  "in-commit-2": 2000,
  "in-commit-6": 6000,
  "in-commit-20": 20_000,
};

/** Returns the nodes that have paused themselves. */
const listStopped = (nodes: ReadonlyMap<number, NodeProcess>): number[] =>
  [...nodes].flatMap(([n, { pid }]) => (readProcessState(pid) === "T" ? [n] : []));
/** Poll interval for nodes that pause themselves. */
const POLL_MS = 100;

const readProcessState = (pid: number): string => {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1] ?? "";
  } catch {
    return "";
  }
};

/** Each node pauses itself at every n-th commit, where n depends on the seed, and is resumed later. */
export const tortureCommits = async (faults: readonly string[], seed: number): Promise<TortureResult> => {
  const random = randomFrom(seed);
  await using cluster = await startCluster();
  const nodes = new Map<number, NodeProcess>();
  let isNextFault = false;
  let pausedNode: number | undefined;
  // A node that pauses itself while a fault is due stays paused as that fault. Otherwise, it is resumed immediately.
  const resuming = setInterval(() => {
    for (const n of listStopped(nodes)) {
      if (isNextFault) [pausedNode, isNextFault] = [n, false];
      else if (n !== pausedNode) nodes.get(n)?.signal("SIGCONT");
    }
  }, POLL_MS);
  const start: typeof cluster.start = async (n, options) => {
    const node = await cluster.start(n, options);
    nodes.set(n, node);
    return node;
  };
  try {
    return await torture<string>(
      {
        cluster: { ...cluster, start },
        start: () => ({ env: { SLIPWAY_FAILPOINT: `after_guard:${20 + Math.floor(random() * 100)}` } }),
        async fault(name) {
          const pauseMs = PAUSES_MS[name];
          if (pauseMs === undefined) return undefined;
          isNextFault = true;
          await until(() => pausedNode !== undefined, { what: "a node to stop itself in a commit", timeoutMs: 60_000 });
          await Bun.sleep(pauseMs);
          pausedNode = undefined;
          return undefined;
        },
      },
      ["kill-1", "kill-2", "kill-3", ...faults.flatMap((fault) => [fault, "kill-1", "kill-2", "kill-3"])],
      seed,
    );
  } finally {
    clearInterval(resuming);
  }
};

const HOUR_MS = 3_600_000;

/** Runs the usual faults on three nodes. The clock of one of them is an hour fast, that of another an hour slow. */
const tortureClocks = async (faults: readonly string[], seed: number): Promise<TortureResult> => {
  using temp = tempDirectory();
  const libraryPath = join(temp.path, "clock.so");
  const sourcePath = join(import.meta.dir, "../faults/clock.c");
  const { exitCode, stderr } = Bun.spawnSync([needs.cc.file, "-O2", "-shared", "-fPIC", "-o", libraryPath, sourcePath]);
  if (exitCode !== 0) throw new Error(stderr.toString());
  const offsets = new Map([
    [2, HOUR_MS],
    [3, -HOUR_MS],
  ]);
  await using cluster = await startCluster();
  return await torture<string>(
    {
      cluster,
      start: (n) => ({ env: { LD_PRELOAD: libraryPath, CLOCK_OFFSET: `${(offsets.get(n) ?? 0) / 1000}` } }),
      async fault(name, { nodes }) {
        if (name !== "check") return undefined;
        const corrected = [...nodes.values()].filter((node) => node.output().includes("the database's, which is used"));
        if (corrected.length !== offsets.size)
          throw new Error(`${corrected.length} nodes found that their clock is wrong`);
        await using sql = new SQL(cluster.database.url, { max: 1 });
        const [{ spread }] = await sql.unsafe(
          "select (max(created_at) - min(created_at))::float8 as spread from api_keys where token_name like 'w-%'",
        );
        if (spread > HOUR_MS / 2) throw new Error(`the times that the nodes wrote are ${spread} ms apart`);
        return undefined;
      },
    },
    [...faults, "hand-over", "hand-over", "hand-over", "check"],
    seed,
  );
};

const PREVIOUS = process.env.SLIPWAY_TEST_PREVIOUS_PROGRAM ?? "";

/** Starts three nodes of the earlier program, on its tables, and replaces them by this program, one after the other, under load. */
const tortureUpgrade = async (faults: readonly string[], seed: number): Promise<TortureResult> => {
  await using cluster = await startCluster({ database: await createDatabase({ empty: true }) });
  return await torture<string>(
    {
      cluster,
      start: (_, startIndex) => ({ program: startIndex === 0 ? [PREVIOUS] : undefined }),
      async fault(name, { nodes }) {
        if (name !== "check") return undefined;
        await using sql = new SQL(cluster.database.url, { max: 1 });
        const ids = [...nodes.values()].map(({ id }) => id);
        const rows = (await sql.unsafe("select id, version from nodes")) as { id: string; version: string }[];
        const versions = new Set(rows.filter(({ id }) => ids.includes(id)).map(({ version }) => version));
        if (versions.size !== 1)
          throw new Error(`after the upgrade, the nodes have the versions ${[...versions].join(", ")}`);
        return undefined;
      },
    },
    [...faults, "check", "kill"],
    seed,
  );
};

const checkCommits = async (options: CheckOptions): Promise<string> => {
  const faults = Object.keys(PAUSES_MS);
  const summary = await tortureRounds(options, { faults, run: tortureCommits });
  return `${options.rounds * faults.length} nodes were paused between guard and COMMIT, for 2, 6 and 20 s, and ${options.rounds * (faults.length + 1) * 3} were killed, ${summary}`;
};

const checkClocks = async (options: CheckOptions): Promise<string> => {
  const summary = await tortureRounds(options, { faults: FAULTS, run: tortureClocks });
  return `${options.rounds * (FAULTS.length + 3)} faults on three nodes whose clocks are two hours apart, ${summary}`;
};

const checkUpgrades = async (options: CheckOptions): Promise<string> => {
  const summary = await tortureRounds(options, {
    faults: ["replace-1", "replace-2", "replace-3"],
    run: tortureUpgrade,
  });
  return `${options.rounds} upgrades of three nodes under load, ${summary}`;
};

export const checks: readonly Check[] = needs.postgres.found
  ? [
      { name: "cluster: stopped in a commit", run: checkCommits },
      ...(needs.cc.found ? [{ name: "cluster: wrong clocks", run: checkClocks }] : []),
      ...(PREVIOUS ? [{ name: "cluster: rolling upgrade", run: checkUpgrades }] : []),
    ]
  : [];
