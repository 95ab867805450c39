// The machine's properties for the benchmark: its size, a core for the server and one for the driver, a process's memory, free ports.
import { readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";

/** Describes the machine's size and versions, for the head of the results. */
export function describeMachine(): string {
  const cores = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cores.length} cores, ${memory} GiB memory, ${cores[0]?.model.trim() ?? "unknown processor"}, ${process.platform} ${process.arch}, Bun ${Bun.version}`;
}

/** Returns the cores of the server under test and of the driver; undefined if pinning is impossible (one core, no taskset). */
export function pickCores(): { server: number; driver: number } | undefined {
  return cpus().length > 1 && Bun.which("taskset") ? { server: 0, driver: 1 } : undefined;
}

/** Returns the command, pinned to a core if there is one. */
export function pinToCore(core: number | undefined, command: string[]): string[] {
  return core === undefined ? command : ["taskset", "-c", String(core), ...command];
}

/** Returns a process's resident memory in MiB; NaN if it no longer exists. */
export function residentMiB(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return Number(line?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}

/** Returns CPU time in ticks (1/100 s): of the whole machine, and of this process with the children it has waited for. */
export function processorTicks(): { machine: number; own: number } {
  const [, user, nice, system, , , irq, softirq] = readFileSync("/proc/stat", "utf8").split(/\s+/, 8).map(Number);
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const own = fields.slice(11, 15).map(Number); // utime, stime, cutime, cstime
  const sum = (ticks: (number | undefined)[]): number =>
    ticks.reduce<number>((total, value) => total + (value ?? 0), 0);
  return { machine: sum([user, nice, system, irq, softirq]), own: sum(own) };
}

/** Returns a process's CPU time in ms, which does not depend on other load on the machine. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [utime = 0, stime = 0] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13)
    .map(Number);
  return (utime + stime) * 10;
}

/** Waits until a process takes less than a tenth of a core for half a second: what a start leaves for later is done then. */
export async function waitUntilIdle(pid: number): Promise<void> {
  for (let before = Number.NEGATIVE_INFINITY, now = processorMs(pid); now - before > 50; ) {
    before = now;
    await Bun.sleep(500);
    now = processorMs(pid);
  }
}

/** Returns the process and all its descendants. */
function listProcessTree(pid: number): number[] {
  let children: number[] = [];
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    // The process ended in the meantime.
  }
  return [pid, ...children.flatMap(listProcessTree)];
}

/** Returns the CPU time of a process and its living descendants, in ms. */
export function processorMsOfTree(pid: number): number {
  return listProcessTree(pid).reduce((sum, one) => sum + processorMs(one), 0);
}

/** Returns the resident memory of a process and its descendants in MiB; shared pages count for each. */
export function residentMiBOfTree(pid: number): number {
  return listProcessTree(pid).reduce((sum, one) => sum + residentMiB(one), 0);
}

/** Returns the file system of a directory, by its mount; memory file systems make commits look free. */
export function findFileSystem(dir: string): string {
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  let best = { at: "", type: "unknown" };
  for (const mount of mounts) {
    const [, at = "", type = ""] = mount.split(" ");
    const holds = dir === at || dir.startsWith(at.endsWith("/") ? at : `${at}/`);
    if (at && holds && at.length >= best.at.length) best = { at, type };
  }
  return best.type;
}

/** Returns a TCP port that was free a moment ago. */
export async function findFreePort(): Promise<number> {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
