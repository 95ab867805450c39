// What the benchmark must know about the machine: its size, a core for the server and one for the driver, memory of a process, free ports.
import { readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";

/** Size of the machine and versions, for the head of the results. */
export function describeMachine(): string {
  const cores = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cores.length} cores, ${memory} GiB memory, ${cores[0]?.model.trim() ?? "unknown processor"}, ${process.platform} ${process.arch}, Bun ${Bun.version}`;
}

/** Cores of the server under test and of the driver; undefined where pinning is impossible (one core, no taskset). */
export function pinnedCores(): { server: number; driver: number } | undefined {
  return cpus().length > 1 && Bun.which("taskset") ? { server: 0, driver: 1 } : undefined;
}

/** The command, pinned to a core when there is one. */
export function pinned(core: number | undefined, command: string[]): string[] {
  return core === undefined ? command : ["taskset", "-c", String(core), ...command];
}

/** Resident memory of a process in MiB; NaN when it no longer exists. */
export function residentMiB(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return Number(line?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}

/** Processor time in ticks (1/100 s): of the whole machine, and of this process with the children it has waited for. */
export function processorTicks(): { machine: number; own: number } {
  const [, user, nice, system, , , irq, softirq] = readFileSync("/proc/stat", "utf8").split(/\s+/, 8).map(Number);
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const own = fields.slice(11, 15).map(Number); // utime, stime, cutime, cstime
  const sum = (ticks: (number | undefined)[]): number =>
    ticks.reduce<number>((total, value) => total + (value ?? 0), 0);
  return { machine: sum([user, nice, system, irq, softirq]), own: sum(own) };
}

/** Processor time that a process has had, in ms: says the same on a machine that is wanted by others. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [utime = 0, stime = 0] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13)
    .map(Number);
  return (utime + stime) * 10;
}

/** Returns the process and all that descend from it. */
function treeOf(pid: number): number[] {
  let children: number[] = [];
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    // It ended in the meantime.
  }
  return [pid, ...children.flatMap(treeOf)];
}

/** Processor time of a process and its living descendants, in ms. */
export function processorMsOfTree(pid: number): number {
  return treeOf(pid).reduce((sum, one) => sum + processorMs(one), 0);
}

/** Resident memory of a process and its descendants in MiB; pages they share count for each. */
export function residentMiBOfTree(pid: number): number {
  return treeOf(pid).reduce((sum, one) => sum + residentMiB(one), 0);
}

/** File system that holds a directory, by its mount; memory file systems make commits look free. */
export function fileSystemOf(dir: string): string {
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  let best = { at: "", type: "unknown" };
  for (const mount of mounts) {
    const [, at = "", type = ""] = mount.split(" ");
    const holds = dir === at || dir.startsWith(at.endsWith("/") ? at : `${at}/`);
    if (at && holds && at.length >= best.at.length) best = { at, type };
  }
  return best.type;
}

/** A TCP port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
