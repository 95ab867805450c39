// The properties of the machine for the benchmark: its size, cores for the server and the driver, the memory of processes, free ports.
import { readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";

/** Describes the machine's size and versions, for the head of the results. */
export function describeMachine(): string {
  const cores = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cores.length} cores, ${memory} GiB memory, ${cores[0]?.model.trim() ?? "unknown processor"}, ${process.platform} ${process.arch}, Bun ${Bun.version}`;
}

/** Returns the cores for the server under test and for the driver; undefined if pinning is impossible (one core, no taskset). */
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

/** Waits until a process takes less than a tenth of a core for half a second, which is when the work of its start is complete. */
export async function waitUntilIdle(pid: number): Promise<void> {
  for (let before = Number.NEGATIVE_INFINITY, after = processorMs(pid); after - before > 50; ) {
    before = after;
    await Bun.sleep(500);
    after = processorMs(pid);
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
  return listProcessTree(pid).reduce((sum, processId) => sum + processorMs(processId), 0);
}

/** Returns the resident memory of a process and its descendants in MiB; shared pages count for each. */
export function residentMiBOfTree(pid: number): number {
  return listProcessTree(pid).reduce((sum, processId) => sum + residentMiB(processId), 0);
}

/** Returns the type of the file system of a directory. In memory file systems, commits would cost nothing. */
export function findFileSystem(dir: string): string {
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  let deepest = { mountPoint: "", type: "unknown" };
  for (const mount of mounts) {
    const [, mountPoint = "", type = ""] = mount.split(" ");
    const contains = dir === mountPoint || dir.startsWith(mountPoint.endsWith("/") ? mountPoint : `${mountPoint}/`);
    if (mountPoint && contains && mountPoint.length >= deepest.mountPoint.length) deepest = { mountPoint, type };
  }
  return deepest.type;
}

/** Returns a TCP port that was free a moment ago. */
export async function findFreePort(): Promise<number> {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
