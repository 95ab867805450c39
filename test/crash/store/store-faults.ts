// Failing disks: the n-th flush or write fails, or the disk is full (RELIABILITY checks 5, 6 and 7).
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "#test/db/deployments.ts";
import { randomFrom } from "#test/support/random.ts";
import type { Check, CheckOptions } from "./store-crash.ts";
import { Oracle } from "./store-oracle.ts";
import { type ChildResult, runChild } from "./store-run.ts";

const CLIENTS = 4;

/** Returns why faults cannot be injected on this machine; empty if they can. */
export const faultSkipReason = (): string => {
  if (process.platform !== "linux") return "the fault library is for Linux";
  return Bun.which("cc") ? "" : "there is no C compiler (cc)";
};

/** Compiles the fault library into a directory and returns its path. */
export const compileFaults = (directory: string): string => {
  const library = join(directory, "fault.so");
  const source = join(import.meta.dir, "..", "faults", "fault.c");
  const compilation = Bun.spawnSync(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"]);
  if (compilation.exitCode !== 0) throw new Error(`cc: ${compilation.stderr}`);
  return library;
};

export type FaultResult = { run: ChildResult; oracle: Oracle; problems: string[]; reasons: string[]; opened: boolean };

/** Runs the writing process on a disk with this fault, checks the resulting database, and runs the process again without the fault. */
export const runWithFault = async (fault: string, batches = 60): Promise<FaultResult> => {
  using temp = temporaryDirectory();
  const directory = join(temp.path, "data");
  const env = { LD_PRELOAD: compileFaults(temp.path), FAULT: fault, FAULT_FILES: "slipway.db" };
  const oracle = new Oracle();
  const reasons: string[] = [];
  let opened = false;
  const onLine = (line: string): void => {
    if (line.startsWith("open ")) opened = true;
    if (line.startsWith("r ")) reasons.push(line.split(" ")[3] ?? "");
  };
  // The tables are created on a good disk.
  await runChild({ directory, clients: CLIENTS, from: oracle.next(CLIENTS), batches: 1 }, oracle);
  const order = { directory, clients: CLIENTS, from: oracle.next(CLIENTS), batches, patient: true };
  const run = await runChild(order, oracle, { env, onLine });
  const problems = oracle.check(directory);
  const nextRun = await runChild({ ...order, from: oracle.next(CLIENTS), batches: 5 }, oracle);
  if (nextRun.code !== 0) problems.push(`the next run ended with ${nextRun.code}: ${nextRun.errors}`);
  problems.push(...oracle.check(directory));
  return { run, oracle, problems, reasons, opened };
};

/** Random faults: whatever the disk does, acknowledged batches exist, and other batches exist completely or not at all. */
export const storeFaults = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  const reason = faultSkipReason();
  if (reason) return `skipped: ${reason}`;
  const random = randomFrom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  let refused = 0;
  for (let round = 1; round <= rounds; round++) {
    const kind = pick(["fsync", "write"]);
    const error = kind === "fsync" ? "EIO" : pick(["EIO", "ENOSPC", "SHORT"]);
    const fault = `${kind}:${1 + Math.floor(random() * 100)}:${error}:${pick([1, 2, 20, 100_000])}`;
    const { run, oracle, problems, opened } = await runWithFault(fault);
    log(`${fault}: exit ${run.code}, ${oracle.acknowledged} acknowledged, ${oracle.refused} refused`);
    // If the disk fails before the store is open, the start fails with an error; later, only `fatal` may end the process.
    const isExpectedExit = run.code === 0 || run.code === 70 || (run.code === 1 && !opened);
    if (!isExpectedExit) problems.push(`the process ended with ${run.code ?? run.signal}: ${run.errors}`);
    if (problems.length > 0) throw new Error(`seed ${seed}, ${fault}: ${problems.slice(0, 5).join("; ")}`);
    refused += oracle.refused;
  }
  return `${rounds} faults, ${refused} refusals, nothing acknowledged lost`;
};

/** Returns why a small disk cannot be created; empty if it can. */
export const smallDiskSkipReason = (): string => {
  if (process.platform !== "linux") return "tmpfs is for Linux";
  if (process.getuid?.() !== 0) return "mounting needs root";
  using temp = temporaryDirectory();
  const attempt = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", temp.path]);
  if (attempt.exitCode !== 0) return `mount: ${attempt.stderr.toString().trim()}`;
  Bun.spawnSync(["umount", temp.path]);
  return "";
};

/** Creates a separate file system of this many MiB until the end of the scope. */
export const mountSmallDisk = (mib: number): { path: string; [Symbol.dispose](): void } => {
  const temp = temporaryDirectory();
  const path = join(temp.path, "disk");
  mkdirSync(path);
  Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${mib}m`, "tmpfs", path]);
  return {
    path,
    [Symbol.dispose]: () => {
      // Lazily, because a Worker that is ending may still have an open file for a moment.
      Bun.spawnSync(["umount", "-l", path]);
      temp[Symbol.dispose]();
    },
  };
};

export const checks: readonly Check[] = [{ name: "store: failing disk", run: storeFaults }];
