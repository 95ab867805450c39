// Backups are made while agents write and people build, and restored into other folders: each contains a committed state, with everything
// that was acknowledged before the backup started (RELIABILITY check 13).
import { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { readAnnouncedUrl } from "#test/support/server.ts";
import { findDatabaseProblems } from "../oracle/database.ts";
import type { LogWriter } from "../oracle/log-writer.ts";
import { command, type ServerSlot } from "../server.ts";
import { assertNoProblems, Torture } from "../server-crash.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";

type RunResult = { code: number; printed: string; errors: string };

/** Runs a command of the program and waits for its end. */
export const runVerb = async (argv: readonly string[], env: Record<string, string> = {}): Promise<RunResult> => {
  const child = Bun.spawn([...command(), ...argv], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [printed, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, printed, errors };
};

const runOk = async (argv: readonly string[]): Promise<string> => {
  const { code, printed, errors } = await runVerb(argv);
  if (code !== 0) throw new Error(`slipway ${argv.join(" ")} ended with ${code}: ${errors}`);
  return printed;
};

/** Number of backups per server: reading all lines of a server that ran for longer would take longer than the backups. */
const BACKUPS_PER_SERVER = 8;

/** Backs up `rounds` times under load, and restores each backup. Returns a one-line summary. */
const serverBackup = async (options: CheckOptions): Promise<string> => {
  let maxDuringBackup = 0;
  let lines = 0;
  for (let firstRound = 1; firstRound <= options.rounds; firstRound += BACKUPS_PER_SERVER) {
    const lastRound = Math.min(options.rounds, firstRound + BACKUPS_PER_SERVER - 1);
    const result = await backUpOneServer(options, firstRound, lastRound);
    maxDuringBackup = Math.max(maxDuringBackup, result.maxDuringBackup);
    lines += result.lines;
  }
  return `${options.rounds} backups, up to ${maxDuringBackup} calls acknowledged during one, ${lines} lines; each restored to a committed state`;
};

/**
 * Runs the rounds `firstRound` to `lastRound` with one server. Returns the most calls acknowledged during one backup, and the number of
 * all lines.
 */
const backUpOneServer = async (
  { seed, log }: CheckOptions,
  firstRound: number,
  lastRound: number,
): Promise<{ maxDuringBackup: number; lines: number }> => {
  await using torture = await Torture.make(seed + firstRound, { agents: 3, builders: 1, daemons: 0 });
  const { place, writers } = torture;
  let maxDuringBackup = 0;
  torture.begin();
  for (let round = firstRound; round <= lastRound; round++) {
    await torture.progress(1 + Math.floor(torture.random() * 200));
    const acknowledgedBefore = writers.map(({ acknowledged }) => acknowledged);
    const totalBefore = torture.acknowledged;
    // Slow backups overlap with many commits and checkpoints; fast ones start at random moments.
    const rate = round % 2 === 0 ? 0 : 4;
    const target = join(place.scratch, round % 2 === 0 ? `backup-${round}.tar` : "backups");
    const argv = ["backup", target, "--json", "--data-dir", place.directory, "--backup-rate-mb", `${rate}`];
    const { path } = JSON.parse(await runOk(argv)) as { path: string };
    const duringBackup = torture.acknowledged - totalBefore;
    const restored = join(place.scratch, `restored-${round}`);
    await runOk(["restore", path, "--data-dir", restored]);
    const lines = writers.map((writer, i) => checkWriterLines(restored, writer, acknowledgedBefore[i] ?? 0));
    maxDuringBackup = Math.max(maxDuringBackup, duringBackup);
    log(
      `backup ${round}: ${duringBackup} calls acknowledged during it, ${lines.map(({ count }) => count).join("+")} lines in it`,
    );
    const problems = lines.flatMap((writerLines) => writerLines.problems);
    assertNoProblems(seed, `backup ${round}`, [...(await findDatabaseProblems(restored)), ...problems]);
    if (round === lastRound) await checkServing(place, restored);
    for (const created of [path, restored]) rmSync(created, { recursive: true, force: true });
  }
  // The backups did not affect the load.
  assertNoProblems(seed, "the end", await torture.finish());
  return { maxDuringBackup, lines: torture.oracle.lines };
};

/** Checks a writer's lines in a restored folder: they must be a prefix, end at the end of a batch, and contain all acknowledged lines. */
const checkWriterLines = (
  directory: string,
  writer: LogWriter,
  minCount: number,
): { count: number; problems: string[] } => {
  using db = new Database(join(directory, "slipway.db"), { readonly: true });
  const rows = db
    .query("select l.output from agent_logs l join agents a on a.key = l.agent where a.id = ? order by l.id")
    .values(writer.options.agent_id) as [string][];
  const { name } = writer.options;
  const problems: string[] = [];
  if (rows.some(([output], i) => writer.sent[i]?.output !== output))
    problems.push(`${name}: a line differs from the sent one`);
  if (rows.length < minCount)
    problems.push(`${name}: LOST, ${minCount} lines were acknowledged before, ${rows.length} exist`);
  if (!writer.borders.has(rows.length)) problems.push(`${name}: a batch is incomplete`);
  return { count: rows.length, problems };
};

/** Checks that a server on the restored folder starts and becomes ready. */
const checkServing = async (place: ServerSlot, directory: string): Promise<void> => {
  const server = place.spawn({ env: { SLIPWAY_DATA_DIR: directory, SLIPWAY_ADDRESS: "127.0.0.1:0" } });
  const url = await readAnnouncedUrl(server.child.stdout);
  const { status } = await fetch(new URL("/readyz", url));
  server.kill("SIGTERM");
  const { code, errors } = await server.ended;
  if (status !== 200 || code !== 0)
    throw new Error(`a server on the restored folder: ${status}, ended with ${code}: ${errors}`);
};

export const checks: readonly Check[] = [{ name: "server: backup and restore under load", run: serverBackup }];
