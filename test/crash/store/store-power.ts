// The power fails while the store works (RELIABILITY checks 3 and 4): from one traced run, possible states of the disk are rebuilt and
// opened, and no write that was acknowledged by then may be missing.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "#test/db/deployments.ts";
import { randomFrom } from "#test/support/random.ts";
import type { Check, CheckOptions } from "./store-crash.ts";
import { Oracle } from "./store-oracle.ts";
import { runChild } from "./store-run.ts";
import {
  buildDiskImage,
  countUnflushed,
  type Event,
  LOSSES,
  type Loss,
  readTrace,
  straceCommand,
} from "./store-trace.ts";

const CLIENTS = 5;

/** Returns why this machine cannot run the test; an empty string if it can. */
export const powerSkipReason = (): string => {
  if (process.platform !== "linux") return "strace exists on Linux only";
  if (!Bun.which("strace")) return "strace is not installed";
  const tried = Bun.spawnSync(["strace", "-o", "/dev/null", "true"]);
  return tried.exitCode === 0 ? "" : `strace may not trace here: ${tried.stderr.toString().trim().split("\n")[0]}`;
};

/** Runs the writing process once under strace, with `batches` batches per client. */
export const runTraced = async (batches: number): Promise<Event[]> => {
  using temp = temporaryDirectory();
  const trace = join(temp.path, "trace");
  const oracle = new Oracle();
  const order = { directory: join(temp.path, "data"), clients: CLIENTS, from: oracle.next(CLIENTS), batches };
  const { code, errors } = await runChild(order, oracle, { commandPrefix: straceCommand(trace) });
  if (code !== 0) throw new Error(`the traced process ended with ${code}: ${errors}`);
  return readTrace(await Bun.file(trace).text());
};

const listOutput = (events: readonly Event[], point: number): string[] =>
  events.flatMap((event) =>
    event.kind === "say" && event.from <= point ? event.text.split("\n").filter(Boolean) : [],
  );

/** Returns the problems of the disk after a power loss at `point`, and the number of batches acknowledged by then. */
export const checkAfterPowerLoss = (events: readonly Event[], point: number, loss: Loss, random: () => number) => {
  using temp = temporaryDirectory();
  const oracle = new Oracle();
  for (const line of listOutput(events, point)) oracle.handleLine(line);
  for (const [name, bytes] of buildDiskImage(events, point, loss, random)) writeFileSync(join(temp.path, name), bytes);
  try {
    return { problems: oracle.check(temp.path), acknowledged: oracle.acknowledged };
  } catch (error) {
    return { problems: [`the database does not open: ${error}`], acknowledged: oracle.acknowledged };
  }
};

/** Returns points directly after a flush, directly before its end, and directly after an acknowledgment, where an error would show. */
export const listCrashPoints = (events: readonly Event[]): number[] =>
  events.flatMap((event) => {
    if (event.kind === "sync" && Number.isFinite(event.to)) return [event.to - 0.5, event.to];
    return event.kind === "say" && event.text.startsWith("a ") ? [event.from] : [];
  });

/** Returns the acknowledgments that were printed before the log was flushed. There must be none. */
export const findEarlyAcknowledgements = (events: readonly Event[]): string[] =>
  events.flatMap((event) =>
    event.kind === "say" && event.text.startsWith("a ") && countUnflushed(events, event) > 0 ? [event.text.trim()] : [],
  );

/** Rebuilds and checks `rounds` disks of one run. */
export const storePowerLoss = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const reason = powerSkipReason();
  if (reason) return `skipped: ${reason}`;
  const random = randomFrom(seed);
  const events = await runTraced(Math.min(20 + Math.floor(rounds / 10), 60));
  const early = findEarlyAcknowledgements(events);
  if (early.length > 0) throw new Error(`acknowledged before the flush: ${early.slice(0, 3).join("; ")}`);
  const points = listCrashPoints(events);
  let acknowledged = 0;
  for (let round = 0; round < rounds; round++) {
    const point = points[Math.floor(random() * points.length)] as number;
    const loss = LOSSES[round % LOSSES.length] as Loss;
    const result = checkAfterPowerLoss(events, point, loss, random);
    acknowledged += result.acknowledged;
    if (result.problems.length > 0) {
      throw new Error(`seed ${seed}, power lost at ${point} with ${loss}: ${result.problems.slice(0, 5).join("; ")}`);
    }
    if (round % 50 === 49) log(`${round + 1} disks opened`);
  }
  return `${rounds} disks opened, ${acknowledged} acknowledged batches checked, none lost`;
};

export const checks: readonly Check[] = [{ name: "store: power loss", run: storePowerLoss }];
