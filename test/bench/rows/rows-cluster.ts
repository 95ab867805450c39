// The PostgreSQL row: the same server on SQLite (the baseline) and as a node on a PostgreSQL on the same machine and disk, which uses the
// other cores. Both use fsync, so every acknowledged write is on disk.
import { mkdtempSync } from "node:fs";
import { dirname, join } from "node:path";
import { productRatio, type Row, range } from "../row.ts";

const POSTGRES = join(import.meta.dir, "../../../.ci/postgres");
/** Agents that send single rows in parallel, which group commits have to combine. */
const WRITERS = 64;
const LINE_AGENTS = 8;

/** Starts a PostgreSQL in a new folder of `parent`. Its user cannot enter the other folders there. */
export const startPostgres = async (
  parent: string,
): Promise<
  AsyncDisposable & { folder: string; env: { SLIPWAY_DATABASE_URL: string; SLIPWAY_ENCRYPTION_KEY: string } }
> => {
  const folder = mkdtempSync(join(parent, "slipway-bench-postgres-"));
  const runPostgres = async (verb: string): Promise<string> => {
    const child = Bun.spawn([POSTGRES, verb, folder], { stdout: "pipe", stderr: "inherit" });
    const message = (await child.stdout.text()).trim();
    if ((await child.exited) !== 0)
      throw new Error(`.ci/postgres ${verb} failed; it needs root and Debian's postgresql`);
    return message;
  };
  const env = { SLIPWAY_DATABASE_URL: await runPostgres("start"), SLIPWAY_ENCRYPTION_KEY: "5".repeat(64) };
  const stop = async (): Promise<void> => void (await runPostgres("stop"));
  return { folder, env, [Symbol.asyncDispose]: stop };
};

export const cluster: Row = {
  name: "cluster",
  title: "A node on PostgreSQL (product) and the same server on SQLite (floor): single rows, log lines, reads",
  sides: ["floor", "product"],
  async measure(bench, side) {
    await using postgres = side === "product" ? await startPostgres(dirname(bench.setup.dir)) : undefined;
    const env = postgres?.env ?? {};
    await using target = await bench.start("product", { agents: WRITERS + LINE_AGENTS, env });
    const [secs, { port }] = [bench.seconds, target];
    const single = await bench.driver.load(port, range(WRITERS).map(target.patch), { secs, lines: 1 });
    const agents = range(LINE_AGENTS).map((agent) => WRITERS + agent);
    const lines = await bench.driver.load(port, agents.map(target.patch), { secs });
    const reads = await bench.driver.load(
      port,
      range(64).map(() => target.get()),
      { secs },
    );
    return {
      rows_per_s: single.batches_per_s,
      row_p50: single.ack.p50,
      row_p99: single.ack.p99,
      lines_per_s: lines.lines_per_s,
      lines_p99: lines.ack.p99,
      gets_per_s: reads.gets_per_s,
      get_p99: reads.get.p99,
      faults: single.errors + lines.errors + reads.errors,
    };
  },
  figures: {
    rows_per_s: "single rows/s",
    row_p50: "row p50 ms",
    row_p99: "row p99 ms",
    lines_per_s: "log lines/s",
    lines_p99: "lines p99 ms",
    gets_per_s: "reads/s",
    get_p99: "read p99 ms",
    faults: "faults",
  },
  verdicts: [
    ["durable single rows", "rows_per_s", 0.6] as const,
    ["log lines", "lines_per_s", 0.4] as const,
    ["reads of a workspace", "gets_per_s", 0.7] as const,
  ].map(([what, figure, bound]) => ({
    what: `${what}/s, PostgreSQL / SQLite`,
    target: `>= ${bound}`,
    value: productRatio(figure),
    bound,
    better: "higher" as const,
    unit: "ratio" as const,
  })),
};
