// `bun run torture`: every check of this folder and of test/fuzz in its long form, one after the other. Prints a table and stores the last
// result of each check in test/results/torture.md. [--only PART OF A NAME] [--rounds N] [--seed N] [--full] [--cluster] [--network]
// [--reads] [--active every]; exits with 1 if a check failed. With SLIPWAY_TEST_DATABASE=postgres, the checks that apply to both databases
// run on the PostgreSQL of SLIPWAY_TEST_POSTGRES, in separate rows.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describeMachine } from "#test/bench/machine.ts";
import { checks as apiFuzz } from "#test/fuzz/api-fuzz.ts";
import { checks as apiSequences } from "#test/fuzz/api-sequences.ts";
import { checks as tokenTiming } from "#test/security/token-timing.ts";
import { usesPostgres } from "#test/support/postgres-server.ts";
import { checks as serverBuilds } from "./builds/server-builds.ts";
import { checks as serverPrebuilds } from "./builds/server-prebuilds.ts";
import { checks as serverTerraform } from "./builds/server-terraform.ts";
import { checks as terraformLives } from "./builds/terraform-lives.ts";
import { checks as serverChats } from "./chats/server-chats.ts";
import { checks as serverChatsRandom } from "./chats/server-chats-random.ts";
import { checks as serverFamilies } from "./chats/server-families.ts";
import { checks as serverHooks } from "./chats/server-hooks.ts";
import { checks as serverCluster } from "./cluster/server-cluster.ts";
import { checks as serverNetworks } from "./cluster/server-networks.ts";
import { checks as serverNodes } from "./cluster/server-nodes.ts";
import { checks as serverReaders } from "./cluster/server-readers.ts";
import { checks as serverBackup } from "./disk/server-backup.ts";
import { checks as daemonKills } from "./engine/daemon-kills.ts";
import { checks as engineBuilds } from "./engine/engine-builds.ts";
import { checks as serverEngine } from "./engine/server-engine.ts";
import { checks as serverOnDocker } from "./engine/server-on-docker.ts";
import { checks as serverSessions } from "./network/server-sessions.ts";
import { checks as serverConnections } from "./server-connections.ts";
import { checks as serverCrash } from "./server-crash.ts";
import { checks as serverDownloads } from "./server-downloads.ts";
import { checks as serverEnvironment } from "./server-environment.ts";
import { checks as serverFailpoints } from "./server-failpoints.ts";
import { checks as serverFaults } from "./server-faults.ts";
import { checks as serverFlush } from "./server-flush.ts";
import { checks as serverSignals } from "./server-signals.ts";
import { checks as serverSlow } from "./server-slow.ts";
import { checks as serverSoak } from "./server-soak.ts";
import { checks as serverStory } from "./server-story.ts";
import { checks as serverStreams } from "./server-streams.ts";
import { type CheckOptions, checks as storeCrash } from "./store/store-crash.ts";
import { checks as storeFaults } from "./store/store-faults.ts";
import { checks as storePower } from "./store/store-power.ts";
import { formatRow, type Result, replaceRows } from "./torture-report.ts";
import { checks as workspaceModel } from "./workspace-model.ts";

/** The order of the checks, their numbers in the list of forty, and their numbers of rounds by default and with --full. */
const PLAN: readonly { name: string; numbers: string; rounds: number; full: number }[] = [
  { name: "store: kill -9", numbers: "1, 2, 12", rounds: 50, full: 200 },
  { name: "store: power loss", numbers: "3, 4", rounds: 300, full: 1000 },
  { name: "store: failing disk", numbers: "5, 6", rounds: 30, full: 200 },
  { name: "server: kill -9", numbers: "1, 19", rounds: 50, full: 200 },
  { name: "server: claims of prebuilds", numbers: "1", rounds: 20, full: 100 },
  { name: "server: builds by people and by the scheduler", numbers: "1", rounds: 20, full: 100 },
  { name: "terraform: server killed, beginning", numbers: "1", rounds: 2, full: 30 },
  { name: "terraform: server killed, ending", numbers: "1", rounds: 2, full: 30 },
  { name: "terraform: worker killed, beginning", numbers: "1", rounds: 2, full: 30 },
  { name: "terraform: worker killed, ending", numbers: "1", rounds: 2, full: 30 },
  { name: "terraform: stopped server", numbers: "1", rounds: 1, full: 10 },
  { name: "terraform: stopped server of a worker", numbers: "1", rounds: 1, full: 10 },
  { name: "terraform: stopped worker", numbers: "1", rounds: 1, full: 10 },
  { name: "terraform: paused server", numbers: "1", rounds: 3, full: 12 },
  { name: "terraform: paused worker", numbers: "1", rounds: 3, full: 12 },
  { name: "terraform: paused program", numbers: "1", rounds: 3, full: 12 },
  { name: "terraform: lives of templates", numbers: "1", rounds: 1, full: 5 },
  { name: "server: chats", numbers: "1, 19", rounds: 25, full: 100 },
  { name: "server: hooks", numbers: "1", rounds: 30, full: 100 },
  { name: "server: families of chats", numbers: "1", rounds: 30, full: 100 },
  { name: "server: a chat that codes", numbers: "1", rounds: 30, full: 100 },
  { name: "chats: random commands", numbers: "10", rounds: 10_000, full: 10_000 },
  { name: "chats: race for one queue", numbers: "10", rounds: 10_000, full: 10_000 },
  { name: "server: failpoints", numbers: "2", rounds: 5, full: 20 },
  { name: "server: flushed, then answered", numbers: "4", rounds: 5, full: 50 },
  { name: "server: failing disk", numbers: "5, 6", rounds: 3, full: 20 },
  { name: "server: full disk", numbers: "7", rounds: 5, full: 50 },
  { name: "server: read-only directory", numbers: "-", rounds: 1, full: 1 },
  { name: "server: database held at its start", numbers: "-", rounds: 1, full: 1 },
  { name: "server: two on one directory", numbers: "8", rounds: 1, full: 1 },
  { name: "server: frozen", numbers: "8", rounds: 3, full: 20 },
  { name: "server: backup and restore under load", numbers: "13", rounds: 20, full: 200 },
  { name: "server: orderly stop", numbers: "14", rounds: 3, full: 20 },
  { name: "server: stalled followers", numbers: "15", rounds: 50, full: 50 },
  { name: "server: stalled event streams", numbers: "16", rounds: 50, full: 50 },
  { name: "server: idle connections", numbers: "17", rounds: 10, full: 10 },
  { name: "server: new connections", numbers: "18", rounds: 10, full: 60 },
  { name: "server: storm of connections", numbers: "18", rounds: 20, full: 60 },
  { name: "server: downloads of apps", numbers: "15", rounds: 1, full: 10 },
  { name: "server: dropped followers", numbers: "19", rounds: 5, full: 50 },
  { name: "server: cap of an agent's lines", numbers: "25", rounds: 5, full: 15 },
  { name: "server: soak", numbers: "39", rounds: 10, full: 60 },
  { name: "workspaces: model and transitions", numbers: "-", rounds: 5_000, full: 50_000 },
  { name: "workspaces: model and a server", numbers: "-", rounds: 60, full: 1_000 },
  { name: "cluster: killed, stopped and cut off", numbers: "40", rounds: 10, full: 50 },
  { name: "cluster: each node killed", numbers: "40", rounds: 10, full: 50 },
  { name: "cluster: cut networks", numbers: "40", rounds: 3, full: 20 },
  { name: "cluster: stopped in a commit", numbers: "40", rounds: 3, full: 20 },
  { name: "cluster: wrong clocks", numbers: "40", rounds: 3, full: 20 },
  { name: "cluster: rolling upgrade", numbers: "40", rounds: 3, full: 20 },
  { name: "cluster: a reader that stops", numbers: "40", rounds: 10, full: 50 },
  { name: "docker: engine killed", numbers: "-", rounds: 1, full: 10 },
  { name: "docker: engine killed, containers live on", numbers: "-", rounds: 1, full: 10 },
  { name: "docker: killed while it builds", numbers: "-", rounds: 1, full: 10 },
  { name: "docker: server killed", numbers: "-", rounds: 1, full: 10 },
  { name: "docker: daemon killed", numbers: "-", rounds: 1, full: 10 },
  { name: "local: daemon killed", numbers: "-", rounds: 1, full: 10 },
  { name: "network: sessions through kills", numbers: "-", rounds: 4, full: 60 },
  { name: "tokens: time of a refusal", numbers: "31", rounds: 100_000, full: 100_000 },
  { name: "API fuzz: values for every operation", numbers: "37, 38", rounds: 20, full: 500 },
  { name: "API fuzz: lives of things", numbers: "38", rounds: 1_000, full: 10_000 },
];

/** Checks that apply to both databases. The others are about the files of a data directory, or only about the HTTP server. */
const ON_ANY_DATABASE = [
  "server: kill -9",
  "server: claims of prebuilds",
  "server: builds by people and by the scheduler",
  "server: chats",
  "server: hooks",
  "server: families of chats",
  "chats: random commands",
  "chats: race for one queue",
  "server: failpoints",
];
const toPostgresName = (name: string): string => `${name}, on PostgreSQL`;
const isClusterCheck = (name: string): boolean => name.startsWith("cluster:");
const toReadsName = (name: string): string => `${name}, reads on every node`;
const toActiveName = (name: string): string => `${name}, every node active`;

/** A check's result, if any, is a one-line summary. */
type NamedCheck = { name: string; run(options: CheckOptions): Promise<unknown> };

const CHECKS: readonly NamedCheck[] = [
  ...[...storeCrash, ...storePower, ...storeFaults],
  ...[
    ...serverCrash,
    ...serverPrebuilds,
    ...serverBuilds,
    ...serverTerraform,
    ...terraformLives,
    ...serverFailpoints,
    ...serverFlush,
    ...serverFaults,
  ],
  ...[...serverChats, ...serverHooks, ...serverFamilies, ...serverStory, ...serverChatsRandom],
  ...[...serverEnvironment, ...serverConnections],
  ...[...serverBackup, ...serverSignals, ...serverSlow, ...serverStreams, ...serverDownloads, ...serverSoak],
  ...serverCluster,
  ...serverNetworks,
  ...serverNodes,
  ...serverReaders,
  ...[...serverEngine, ...engineBuilds, ...serverOnDocker, ...daemonKills],
  ...serverSessions,
  ...workspaceModel,
  ...tokenTiming,
  ...apiFuzz,
  ...apiSequences,
];

const RESULTS = join(import.meta.dir, "../results/torture.md");

const printLine = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

// Ends the process with `exit`, so that the servers are killed.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string" },
    seed: { type: "string" },
    full: { type: "boolean", default: false },
    /** Runs the cluster checks, in separate rows, on nodes that all answer reads (`cluster_reads = every`). */
    reads: { type: "boolean", default: false },
    /** With `every`, runs them on nodes that are all active (`cluster_active = every`). */
    active: { type: "string", default: "one" },
    /** Like `--only cluster:`, in addition to another `--only`. */
    cluster: { type: "boolean", default: false },
    /** Like `--only network:`, in addition to another `--only`. */
    network: { type: "boolean", default: false },
  },
});
if (values.reads) process.env.SLIPWAY_TEST_CLUSTER_READS = "every";
const isEvery = values.active === "every";
if (isEvery) process.env.SLIPWAY_TEST_CLUSTER_ACTIVE = "every";
const isWanted = (name: string): boolean =>
  name.includes(values.only ?? "") &&
  (!values.cluster || isClusterCheck(name)) &&
  (!values.network || name.startsWith("network:")) &&
  (!(values.reads || isEvery) || isClusterCheck(name)) &&
  (!usesPostgres || ON_ANY_DATABASE.includes(name));
const wanted = PLAN.filter(({ name }) => isWanted(name));
if (wanted.length === 0)
  printLine(`no check matches; the names are:\n${PLAN.map(({ name }) => `  ${name}`).join("\n")}`);

const unplanned = CHECKS.filter(({ name }) => !PLAN.some((planned) => planned.name === name));
if (unplanned.length > 0)
  throw new Error(`checks without a row in PLAN: ${unplanned.map(({ name }) => name).join(", ")}`);

const runCheck = async ({ name, numbers, ...counts }: (typeof PLAN)[number]): Promise<Result> => {
  const rounds = Number(values.rounds ?? (values.full ? counts.full : counts.rounds));
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  const startedAt = performance.now();
  const createResult = (outcome: Result["outcome"], summary: string): Result => {
    const seconds = (performance.now() - startedAt) / 1000;
    const date = new Date().toISOString().slice(0, 10);
    const rowName = isEvery
      ? toActiveName(name)
      : values.reads
        ? toReadsName(name)
        : usesPostgres
          ? toPostgresName(name)
          : name;
    return { name: rowName, numbers, rounds, seed, outcome, summary, seconds, date };
  };
  const check = CHECKS.find((candidate) => candidate.name === name);
  if (!check) return createResult("skipped", "a required program is missing on this machine");
  printLine(`\n== ${name} (${rounds} rounds, seed ${seed})`);
  try {
    const summary = await check.run({ rounds, seed, log: (line) => printLine(`   ${line}`) });
    const startsServer = ["server: ", "terraform: ", "network: "].some((kind) => name.startsWith(kind));
    const subject = Bun.env.SLIPWAY_TEST_BINARY && startsServer ? "the compiled program, " : "";
    return createResult("passed", subject + (typeof summary === "string" ? summary : "nothing wrong"));
  } catch (error) {
    return createResult("FAILED", error instanceof Error ? error.message : String(error));
  }
};

const results: Result[] = [];
for (const planned of wanted) {
  const result = await runCheck(planned);
  results.push(result);
  printLine(`${result.outcome} in ${result.seconds.toFixed(0)} s: ${result.summary}`);
  // Written after each check, so that an interrupted run keeps its results.
  writeFileSync(
    RESULTS,
    replaceRows(
      readFileSync(RESULTS, "utf8"),
      PLAN.flatMap(({ name }) => [name, toPostgresName(name), toReadsName(name), toActiveName(name)]),
      results,
      describeMachine(),
    ),
  );
}
printLine(`\n${results.map(formatRow).join("\n")}`);
process.exit(wanted.length > 0 && results.every(({ outcome }) => outcome !== "FAILED") ? 0 : 1);
