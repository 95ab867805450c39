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
import { EXIT, type RunVerb, type VerbInput } from "../verb.ts";
import { explainError } from "./remote.ts";

type Measurement = {
  used: number;
  total: number | null;
  unit: "cores" | "bytes";
  /** Set if only the whole machine can be measured, although the workspace shares it. */
  of_machine?: true;
};
type Kind = "cpu" | "memory" | "disk";

/** Duration of the CPU measurement. */
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
  const settings = has.host ? { ...input, readFile: rejectFormat } : input;
  const isShared = !has.host && input.env[SHARES_MACHINE] === "true";
  return explainError("stat", input, async () => {
    const figures: Partial<Record<Kind, Measurement>> = {};
    for (const kind of kinds) {
      const own = isShared && value.path === undefined ? await OWN_MEASUREMENTS[kind](input) : undefined;
      const figure = own ?? (await MEASUREMENTS[kind](settings, value.path ?? input.env.HOME ?? "/"));
      figures[kind] = isShared && !own && value.path === undefined ? { ...figure, of_machine: true } : figure;
    }
    if (has.json) input.print(JSON.stringify(figures));
    else if (word !== undefined) input.print(formatMeasurement(figures[parseKind(word)] as Measurement, unit));
    else
      input.print(
        formatTable(
          ["WHAT", "USED"],
          kinds.map((kind) => [kind, formatMeasurement(figures[kind] as Measurement, unit)]),
        ),
      );
    return EXIT.ok;
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

const rejectFormat = (path: string): never => {
  throw new Error(`${path} has an unexpected format`);
};

/** `1.2 of 4 cores (30 %)`. */
const formatMeasurement = ({ used, total, unit, of_machine }: Measurement, prefix: Prefix | undefined): string => {
  const formatBytes = (amount: number): string =>
    prefix === undefined
      ? formatSize(amount)
      : `${(amount / 1024 ** (PREFIXES.indexOf(prefix) + 1)).toFixed(prefix === "Ki" ? 0 : 1)} ${prefix}B`;
  const text = (amount: number): string => (unit === "bytes" ? formatBytes(amount) : amount.toFixed(1));
  const noun = unit === "cores" ? " cores" : "";
  if (total === null || total === 0) return `${text(used)}${noun}`;
  const end = of_machine ? ", whole machine" : "";
  const whole = unit === "bytes" ? formatBytes(total) : String(Math.round(total * 100) / 100);
  return `${text(used)} of ${whole}${noun} (${Math.round((used / total) * 100)} %)${end}`;
};

const measureCpu = async (input: VerbInput): Promise<Measurement> => {
  const started = input.clock.monotonic();
  const before = readUsedMs(input);
  await pause(input.clock, SAMPLE_MS);
  const used = (readUsedMs(input) - before) / (input.clock.monotonic() - started);
  const [quota, period] = (read(input, "cpu.max") ?? "max 1").split(" ");
  const limit = quota === "max" ? availableParallelism() : Number(quota) / Number(period);
  return { used: Math.max(0, used), total: Math.min(limit, availableParallelism()), unit: "cores" };
};

/** Returns the CPU time used, in milliseconds: by the container if there is one, otherwise by the machine. */
const readUsedMs = (input: VerbInput): number => {
  const [, own] = /^usage_usec (\d+)$/m.exec(read(input, "cpu.stat") ?? "") ?? [];
  if (own !== undefined && isContained(input)) return Number(own) / 1000;
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
};

const measureMemory = async (input: VerbInput): Promise<Measurement> => {
  const limit = Number(read(input, "memory.max") ?? Number.NaN);
  const current = Number(read(input, "memory.current") ?? Number.NaN);
  if (!Number.isFinite(current) || !isContained(input)) {
    return { used: totalmem() - freemem(), total: totalmem(), unit: "bytes" };
  }
  // Reclaimable cache is not counted as used.
  const [, cache = "0"] = /^inactive_file (\d+)$/m.exec(read(input, "memory.stat") ?? "") ?? [];
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
  const started = clock.monotonic();
  const before = readOwnUse(env[AGENT_ID_VARIABLE] ?? "");
  if (!before) return undefined;
  await pause(clock, SAMPLE_MS);
  const elapsedMs = clock.monotonic() - started;
  let used = 0;
  // For a process that started in between, all of its CPU time counts.
  for (const [pid, ms] of readOwnUse(env[AGENT_ID_VARIABLE] ?? "")?.cpu_ms ?? [])
    used += ms - (before.cpu_ms.get(pid) ?? 0);
  return { used: used / elapsedMs, total: availableParallelism(), unit: "cores" };
};

const measureOwnMemory: OwnMeasurement = async ({ env }) => {
  const use = readOwnUse(env[AGENT_ID_VARIABLE] ?? "");
  return use && { used: use.memory_bytes, total: totalmem(), unit: "bytes" };
};

/** Measures the home folder. */
const measureOwnDisk: OwnMeasurement = async ({ env }) => {
  if (!env.HOME) return undefined;
  const child = Bun.spawn(["du", "-skx", env.HOME], { stdout: "pipe", stderr: "ignore" });
  // `du` reports what it can read, and exits with 1 if a file disappears.
  const kibibytes = Number.parseInt(await child.stdout.text(), 10);
  return Number.isNaN(kibibytes) ? undefined : { used: kibibytes * 1024, total: null, unit: "bytes" };
};

/** For workspaces that consist of processes on a shared machine. Undefined where these are not visible. */
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
const isContained = (input: VerbInput): boolean => read(input, "memory.current") !== undefined;

const read = ({ readFile }: VerbInput, name: string): string | undefined => {
  try {
    return readFile(`${CGROUP}/${name}`).trim();
  } catch {
    return undefined;
  }
};
