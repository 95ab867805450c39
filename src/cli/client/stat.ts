// `slipway stat [cpu|memory|disk]`: the resource usage of a workspace, measured inside it. In a container these are the container's usage
// and limits; on a shared machine, the workspace's own processes and home folder. Needs no server. Intended for template metadata and for
// users.

import { statfsSync } from "node:fs";
import { availableParallelism, cpus, freemem, totalmem } from "node:os";
import { formatSize } from "#base/format-size.ts";
import { pause } from "#base/retry.ts";
import { usageError } from "#base/usage-error.ts";
import { AGENT_ID_VARIABLE } from "#src/daemon/environment.ts";
import { readOwnUse } from "#src/daemon/own-processes.ts";
import { readArguments, requireNoWords } from "../arguments.ts";
import { VerbFailure } from "../failure.ts";
import { formatTable } from "../options.ts";
import type { RunVerb, VerbInput } from "../verb.ts";
import { explainError } from "./remote.ts";

type Measurement = {
  used: number;
  total: number | null;
  unit: "cores" | "bytes";
  /** Set if only the whole machine can be measured, although the workspace shares it. */
  of_machine?: true;
};
type Kind = "cpu" | "memory" | "disk";

/** How long the CPU usage is measured. */
const SAMPLE_MS = 1000;
const CGROUP = "/sys/fs/cgroup";
/** Set by the daemon if its workspace consists of processes on a shared machine. */
const SHARES_MACHINE = "SLIPWAY_SHARES_MACHINE";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["path", "prefix"], switches: ["host"] });
  const [word, ...more] = words;
  requireNoWords(more);
  const kinds: readonly Kind[] = word === undefined ? ["cpu", "memory", "disk"] : [parseKind(word)];
  if (value.path !== undefined && !kinds.includes("disk")) throw usageError("--path", "only with disk");
  const unit = parseUnit(value.prefix);
  // The machine itself has no cgroup limits.
  const source = has.host ? { ...input, readFile: rejectRead } : input;
  const isShared = !has.host && value.path === undefined && input.env[SHARES_MACHINE] === "true";
  return explainError("stat", input, async () => {
    const measurements: Partial<Record<Kind, Measurement>> = {};
    for (const kind of kinds) {
      const ownMeasurement = isShared ? await OWN_MEASUREMENTS[kind](input) : undefined;
      const measurement = ownMeasurement ?? (await MEASUREMENTS[kind](source, value.path ?? input.env.HOME ?? "/"));
      measurements[kind] = isShared && !ownMeasurement ? { ...measurement, of_machine: true } : measurement;
    }
    if (has.json) input.print(JSON.stringify(measurements));
    else if (word !== undefined) input.print(formatMeasurement(measurements[parseKind(word)] as Measurement, unit));
    else
      input.print(
        formatTable(
          ["RESOURCE", "USED"],
          kinds.map((kind) => [kind, formatMeasurement(measurements[kind] as Measurement, unit)]),
        ),
      );
  });
};

const parseKind = (word: string): Kind => {
  const kind = { cpu: "cpu", mem: "memory", memory: "memory", disk: "disk" }[word];
  if (kind === undefined) throw usageError(word, "expected cpu, memory or disk");
  return kind as Kind;
};

const PREFIXES = ["Ki", "Mi", "Gi", "Ti"] as const;
type Prefix = (typeof PREFIXES)[number];

const parseUnit = (given: string | undefined): Prefix | undefined => {
  const unit = PREFIXES.find((one) => one === given);
  if (given !== undefined && unit === undefined) throw usageError("--prefix", `expected ${PREFIXES.join(", ")}`);
  return unit;
};

const rejectRead = (path: string): never => {
  throw new Error(`${path} is not read with --host`);
};

/** `1.2 of 4 cores (30 %)`. */
const formatMeasurement = ({ used, total, unit, of_machine }: Measurement, prefix: Prefix | undefined): string => {
  const formatBytes = (amount: number): string =>
    prefix === undefined
      ? formatSize(amount)
      : `${(amount / 1024 ** (PREFIXES.indexOf(prefix) + 1)).toFixed(prefix === "Ki" ? 0 : 1)} ${prefix}B`;
  const formatAmount = (amount: number): string => (unit === "bytes" ? formatBytes(amount) : amount.toFixed(1));
  const noun = unit === "cores" ? " cores" : "";
  if (total === null || total === 0) return `${formatAmount(used)}${noun}`;
  const machineNote = of_machine ? ", whole machine" : "";
  const totalText = unit === "bytes" ? formatBytes(total) : String(Math.round(total * 100) / 100);
  return `${formatAmount(used)} of ${totalText}${noun} (${Math.round((used / total) * 100)} %)${machineNote}`;
};

const measureCpu = async (input: VerbInput): Promise<Measurement> => {
  const startedAt = input.clock.monotonic();
  const earlier = readUsedMs(input);
  await pause(input.clock, SAMPLE_MS);
  const used = (readUsedMs(input) - earlier) / (input.clock.monotonic() - startedAt);
  const [quota, period] = (readCgroupFile(input, "cpu.max") ?? "max 1").split(" ");
  const limit = quota === "max" ? availableParallelism() : Number(quota) / Number(period);
  return { used: Math.max(0, used), total: Math.min(limit, availableParallelism()), unit: "cores" };
};

/** Returns the CPU time used, in milliseconds: by the container if there is one, otherwise by the machine. */
const readUsedMs = (input: VerbInput): number => {
  const [, usageMicros] = /^usage_usec (\d+)$/m.exec(readCgroupFile(input, "cpu.stat") ?? "") ?? [];
  if (usageMicros !== undefined && isContained(input)) return Number(usageMicros) / 1000;
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
};

const measureMemory = async (input: VerbInput): Promise<Measurement> => {
  const limit = Number(readCgroupFile(input, "memory.max") ?? Number.NaN);
  const current = Number(readCgroupFile(input, "memory.current") ?? Number.NaN);
  if (!Number.isFinite(current) || !isContained(input)) {
    return { used: totalmem() - freemem(), total: totalmem(), unit: "bytes" };
  }
  // Reclaimable cache is not counted as used.
  const [, cache = "0"] = /^inactive_file (\d+)$/m.exec(readCgroupFile(input, "memory.stat") ?? "") ?? [];
  const total = Number.isFinite(limit) ? limit : totalmem();
  return { used: Math.max(0, current - Number(cache)), total, unit: "bytes" };
};

const measureDisk = async (_: VerbInput, path: string): Promise<Measurement> => {
  try {
    const { blocks, bfree, bsize } = statfsSync(path);
    return { used: (blocks - bfree) * bsize, total: blocks * bsize, unit: "bytes" };
  } catch (error) {
    throw new VerbFailure(`${path} cannot be read: ${(error as Error).message}`);
  }
};

type OwnMeasurement = (input: VerbInput) => Promise<Measurement | undefined>;

const measureOwnCpu: OwnMeasurement = async ({ clock, env }) => {
  const startedAt = clock.monotonic();
  const earlier = readOwnUse(env[AGENT_ID_VARIABLE] ?? "");
  if (!earlier) return undefined;
  await pause(clock, SAMPLE_MS);
  const elapsedMs = clock.monotonic() - startedAt;
  let usedMs = 0;
  // For a process that started in between, all of its CPU time counts.
  for (const [pid, ms] of readOwnUse(env[AGENT_ID_VARIABLE] ?? "")?.cpu_ms ?? [])
    usedMs += ms - (earlier.cpu_ms.get(pid) ?? 0);
  return { used: usedMs / elapsedMs, total: availableParallelism(), unit: "cores" };
};

const measureOwnMemory: OwnMeasurement = async ({ env }) => {
  const usage = readOwnUse(env[AGENT_ID_VARIABLE] ?? "");
  return usage && { used: usage.memory_bytes, total: totalmem(), unit: "bytes" };
};

/** Measures the home folder. */
const measureOwnDisk: OwnMeasurement = async ({ env }) => {
  if (!env.HOME) return undefined;
  const child = Bun.spawn(["du", "-skx", env.HOME], { stdout: "pipe", stderr: "ignore" });
  // `du` reports what it can read, and exits with 1 if a file disappears.
  const kibibytes = Number.parseInt(await child.stdout.text(), 10);
  return Number.isNaN(kibibytes) ? undefined : { used: kibibytes * 1024, total: null, unit: "bytes" };
};

/** Measurements of a workspace that consists of processes on a shared machine; undefined if its processes are not visible. */
const OWN_MEASUREMENTS: Readonly<Record<Kind, OwnMeasurement>> = {
  cpu: measureOwnCpu,
  memory: measureOwnMemory,
  disk: measureOwnDisk,
};

const MEASUREMENTS: Readonly<Record<Kind, (input: VerbInput, path: string) => Promise<Measurement>>> = {
  cpu: measureCpu,
  memory: measureMemory,
  disk: measureDisk,
};

/** The root cgroup of a machine has no such file; a container's root is a child cgroup. */
const isContained = (input: VerbInput): boolean => readCgroupFile(input, "memory.current") !== undefined;

const readCgroupFile = ({ readFile }: VerbInput, name: string): string | undefined => {
  try {
    return readFile(`${CGROUP}/${name}`).trim();
  } catch {
    return undefined;
  }
};
