// The backup row: what users of a running server notice during a backup. Windows of the same load with and without a backup alternate, on a
// large database: the command makes two backups, on any core, as a person would run it, and the server makes one automatic backup, which
// shares the server's core. Each backup of the command is restored and must contain every line that was committed before it started.
import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { LoadResult, PlanLine } from "../driver.ts";
import { processorMs, residentMiB } from "../machine.ts";
import { type Product, type SeededAgent, seedAgents, startProduct } from "../product.ts";
import { median } from "../report.ts";
import { type Bench, countFaults, type Figures, productFigure, type Row } from "../row.ts";
import { seedLines } from "../seeds/seed-lines.ts";

const MIB = 2 ** 20;
/** BENCH_BACKUP is the size of the database in MiB, for example 128 for a smaller one. */
const SIZE_MIB = Number(process.env.BENCH_BACKUP ?? 2048);
const AGENTS = 8;
const LINES_PER_BATCH = 100;
/** Share of the baseline's maximum: less than half of what the product accepts next to the GETs. At full load, p99 means nothing. */
const RATE_SHARE = 1 / 16;
/** Windows without a backup are about as long as those with a backup, so that rare stalls are equally likely in both. */
const SECONDS = Number(process.env.BENCH_BACKUP_SECONDS ?? 40);
const MAX_SECONDS = 900;

/** A window takes a minute, so progress is printed. */
const printProgress = (text: string): void => void process.stderr.write(`${text}\n`);

/** One window with new agents, because every line must be new to their followers. */
type Window = { bench: Bench; product: Product; agents: SeededAgent[]; rate: number };
type LoadMeasurement = LoadResult & { wal_mib: number; growth_mib: number; cpu_ms: number };

/** Runs the load for a time, or until `work` is done. `work` starts after the load's warm-up. */
const measureUnderLoad = async (
  { bench, product, agents, rate }: Window,
  work?: () => Promise<void>,
): Promise<LoadMeasurement> => {
  const probe: PlanLine = {
    kind: "probe",
    path: `/api/v2/workspaces/${agents[0]?.workspaceId}`,
    token: product.adminToken,
  };
  const plan = agents.flatMap(({ token, agentId, logSourceId }, agent): PlanLine[] => {
    const path = `/api/v2/workspaceagents/${agentId}/logs?follow=true&no_compression&after=0`;
    return [
      { kind: "patch", agent, path: "/api/v2/workspaceagents/me/logs", token, source: logSourceId },
      { kind: "follow", agent, path, token: product.adminToken },
    ];
  });
  const warmUpSeconds = 2;
  const keys = { secs: work ? MAX_SECONDS : SECONDS, warm: warmUpSeconds, rate, probe_us: 1000 };
  const ended = new AbortController();
  const log = join(product.dataDir, "slipway.db-wal");
  let [walBytes, peakMiB, memoryBefore, cpuMs] = [0, 0, Number.NaN, Number.NaN];
  const samplePeaks = (): void => {
    walBytes = Math.max(walBytes, existsSync(log) ? statSync(log).size : 0);
    peakMiB = Math.max(peakMiB, residentMiB(product.pid));
  };
  const working = Bun.sleep((warmUpSeconds + 0.5) * 1000).then(async () => {
    memoryBefore = residentMiB(product.pid);
    const processor = processorMs(product.pid);
    const sampling = setInterval(samplePeaks, 100);
    try {
      await (work ? work() : Bun.sleep(SECONDS * 1000));
    } finally {
      clearInterval(sampling);
      cpuMs = processorMs(product.pid) - processor;
      if (work) ended.abort();
    }
  });
  const load = bench.driver.load(product.port, [...plan, probe], keys, undefined, ended.signal);
  const [result] = await Promise.all([load, working]);
  const kiloLines = (result.lines_per_s * result.seconds) / 1000;
  return { ...result, wal_mib: walBytes / MIB, growth_mib: peakMiB - memoryBefore, cpu_ms: cpuMs / kiloLines };
};

/** Counts the lines of these agents in a database. */
const countLines = (file: string, agents: readonly SeededAgent[]): number[] => {
  using db = new Database(file, { readonly: true });
  const count = db.query("select count(*) as n from agent_logs where agent = (select key from agents where id = ?)");
  return agents.map(({ agentId }) => (count.get(agentId) as { n: number }).n);
};

type Backup = { seconds: number; mib: number; restored_s: number; lost: number };

/**
 * Makes a backup, then restores it and counts the lines that are missing. `make` returns the path. Nothing is removed before the end,
 * because freeing gigabytes keeps some disks busy for a long time.
 */
class BackupRun {
  #path = "";
  #countsBefore: number[] = [];
  seconds = 0;

  constructor(
    private readonly dataDir: string,
    private readonly agents: readonly SeededAgent[],
    private readonly make: () => Promise<string>,
  ) {}

  async run(): Promise<void> {
    this.#countsBefore = countLines(join(this.dataDir, "slipway.db"), this.agents);
    const startedAt = performance.now();
    this.#path = await this.make();
    this.seconds = (performance.now() - startedAt) / 1000;
  }

  async measureRestore(command: string[], seededAgent: SeededAgent, seeded: number): Promise<Backup> {
    const restoredDir = join(this.dataDir, "..", `restored-${crypto.randomUUID()}`);
    const startedAt = performance.now();
    await runCommand(command, ["restore", this.#path, "--data-dir", restoredDir, "--backup-rate-mb", "0"]);
    const restored_s = (performance.now() - startedAt) / 1000;
    const file = join(restoredDir, "slipway.db");
    const mib = statSync(file).size / MIB;
    const [seededCount = 0, ...found] = countLines(file, [seededAgent, ...this.agents]);
    const lost = this.#countsBefore.reduce(
      (sum, n, i) => sum + Math.max(0, n - (found[i] ?? 0)),
      Math.max(0, seeded - seededCount),
    );
    return { seconds: this.seconds, mib, restored_s, lost };
  }
}

const runCommand = async (command: string[], argv: string[]): Promise<string> => {
  const child = Bun.spawn([...command, ...argv], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [printed, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(`slipway ${argv.join(" ")}: ${errors}`);
  return printed;
};

/** Waits for the first automatic backup in this folder and returns its path. */
const awaitAutomaticBackup = async (folder: string): Promise<string> => {
  for (;;) {
    const name = existsSync(folder) ? readdirSync(folder).find((name) => name.startsWith("slipway-")) : undefined;
    if (name) return join(folder, name);
    await Bun.sleep(50);
  }
};

const FIGURE_LABELS = {
  ack_p50: "ack p50 ms",
  ack_p99: "ack p99 ms",
  follow_p99: "follower p99 ms",
  get_p99: "GET p99 ms",
  ack_p999: "ack p99.9 ms",
  ack_max: "ack longest ms",
  get_max: "GET longest ms",
  wal_mib: "file of the write-ahead log MiB",
  growth_mib: "server's memory growth MiB",
  cpu_ms: "server's processor ms for 1,000 lines",
};

const toFigures = (measurement: LoadMeasurement): Record<keyof typeof FIGURE_LABELS, number> => ({
  ack_p50: measurement.ack.p50,
  ack_p99: measurement.ack.p99,
  follow_p99: measurement.follow.p99,
  get_p99: measurement.probe.p99,
  ack_p999: measurement.ack.p999,
  ack_max: measurement.ack.max,
  get_max: measurement.probe.max,
  wal_mib: measurement.wal_mib,
  growth_mib: measurement.growth_mib,
  cpu_ms: measurement.cpu_ms,
});

const KINDS = { without: "without", verb: "with the verb", own: "with the server's own" } as const;
type Kind = keyof typeof KINDS;
const TURNS: readonly Kind[] = ["without", "verb", "without", "verb", "without", "own"];

export const backup: Row = {
  name: "backup",
  title: `Backups of a database of ${SIZE_MIB.toLocaleString("en")} MiB under a sixteenth of the lines/s that the floor takes at most, ${AGENTS} agents with a follower each, an unrelated GET every ms`,
  sides: ["product"],
  maxRounds: 1,
  async measure(bench) {
    const { productCommand: command, core, dir } = bench.setup;
    if (!command) throw new Error("there is no product to measure");
    const dataDir = join(dir, `large-${crypto.randomUUID()}`, "data");
    mkdirSync(dataDir, { recursive: true });
    const options = { command, core, dataDir };
    const seedingProduct = await startProduct(options);
    const seeded = await seedAgents(seedingProduct, AGENTS * TURNS.length + 1);
    await seedingProduct[Symbol.asyncDispose]();
    const seededAgent = seeded.pop() as SeededAgent;
    const lines = await seedLines(dataDir, seededAgent.agentId, SIZE_MIB * MIB);
    const measurements: Record<Kind, LoadMeasurement[]> = { without: [], verb: [], own: [] };
    const backups: Backup[] = [];
    let faultCount = 0;
    const rate = Math.round(((await bench.floorLimit()) * RATE_SHARE) / LINES_PER_BATCH);
    const target = join(dataDir, "..", "backups");
    const automaticBackupDir = join(dataDir, "..", "own");
    const runKind = async (kind: Kind, product: Product): Promise<void> => {
      const agents = seeded.splice(0, AGENTS);
      const make = async (): Promise<string> =>
        kind === "own"
          ? awaitAutomaticBackup(automaticBackupDir)
          : (
              JSON.parse(await runCommand(command, ["backup", target, "--json", "--data-dir", dataDir])) as {
                path: string;
              }
            ).path;
      const backupRun = new BackupRun(dataDir, agents, make);
      const window = await measureUnderLoad(
        { bench, product, agents, rate },
        kind === "without" ? undefined : () => backupRun.run(),
      );
      measurements[kind].push(window);
      faultCount += countFaults(window).faults ?? 0;
      const { ack, follow, probe, seconds, wal_mib } = window;
      printProgress(
        `  ${KINDS[kind]} backup, ${seconds.toFixed(0)} s: p99 ack ${ack.p99}, follower ${follow.p99}, GET ${probe.p99}, log ${wal_mib.toFixed(0)} MiB`,
      );
      // The server's own backup has started before the load, so it is not restored.
      if (kind === "verb") backups.push(await backupRun.measureRestore(command, seededAgent, lines));
    };
    {
      await using product = await startProduct(options);
      for (const kind of TURNS.filter((kind) => kind !== "own")) await runKind(kind, product);
    }
    {
      const env = { SLIPWAY_BACKUP_INTERVAL: "1d", SLIPWAY_BACKUP_DIR: automaticBackupDir };
      await using product = await startProduct({ ...options, env });
      await runKind("own", product);
    }
    rmSync(join(dataDir, ".."), { recursive: true });
    const computeKindMedians = (kind: Kind): Figures => {
      const windows = measurements[kind].map(toFigures);
      const names = Object.keys(FIGURE_LABELS) as (keyof typeof FIGURE_LABELS)[];
      return Object.fromEntries(
        names.map((name) => [`${kind}_${name}`, median(windows.map((windowFigures) => windowFigures[name]))]),
      );
    };
    const [without, withVerb, withAutomatic] = [
      computeKindMedians("without"),
      computeKindMedians("verb"),
      computeKindMedians("own"),
    ];
    const ratio = (name: string): number =>
      Math.max(
        ...["ack", "follow", "get"].map(
          (figure) =>
            (({ ...withVerb, ...withAutomatic })[`${name}_${figure}_p99`] ?? 0) /
            (without[`without_${figure}_p99`] ?? 0),
        ),
      );
    return {
      ...without,
      ...withVerb,
      ...withAutomatic,
      ratio: ratio("verb"),
      own_ratio: ratio("own"),
      backup_s: median(backups.map((backup) => backup.seconds)),
      backup_mib: median(backups.map((backup) => backup.mib)),
      restore_s: median(backups.map((backup) => backup.restored_s)),
      lost: backups.reduce((sum, backup) => sum + backup.lost, 0),
      lines_per_s: Math.min(
        ...Object.values(measurements)
          .flat()
          .map((window) => window.lines_per_s),
      ),
      faults: faultCount,
    };
  },
  figures: {
    ...Object.fromEntries(
      Object.entries(KINDS).flatMap(([kind, words]) =>
        Object.entries(FIGURE_LABELS).map(([name, label]) => [`${kind}_${name}`, `${words}: ${label}`]),
      ),
    ),
    backup_s: "a backup takes s",
    backup_mib: "its database MiB",
    restore_s: "its restore takes s",
    lost: "lines missing in restored backups",
    lines_per_s: "lines/s, at least",
    faults: "faults",
  },
  verdicts: [
    {
      what: "p99 of acks, followers or GETs, whichever grew most: with the verb / without",
      target: "<= 2",
      value: productFigure("ratio"),
      bound: 2,
      better: "lower",
      unit: "ratio",
    },
    {
      what: "the same with the server's own backup, on the server's core",
      target: "<= 2",
      value: productFigure("own_ratio"),
      bound: 2,
      better: "lower",
      unit: "ratio",
    },
    {
      what: "lines committed before a backup and missing in it when restored",
      target: "0",
      value: productFigure("lost"),
      bound: 0,
      better: "lower",
      unit: "count",
    },
  ],
};
