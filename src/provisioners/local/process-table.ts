// Inspects processes of this machine: whether a process is still the one that was started (process IDs are reused), and which processes
// belong to a workspace. Reads /proc on Linux and `ps` elsewhere.
import { readdirSync, readFileSync } from "node:fs";

/** Identifies a started process: its ID, and a value that differs between processes with the same ID. */
export type ProcessMark = { readonly pid: number; readonly started: string };

const tryRead = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch {
    return undefined;
  }
};

/** Returns the mark of a living process; undefined if the process does not exist or is a zombie. */
export const findMark = (pid: number): ProcessMark | undefined => {
  const status = readStatus(pid);
  return status && !status.hasEnded ? status.mark : undefined;
};

/** Returns the mark of a child process, even if it has just ended and is a zombie. Its own children may still run. */
export const findChildMark = (pid: number): ProcessMark | undefined => readStatus(pid)?.mark;

/** Returns true if the process is stopped, by SIGSTOP or as a shell job. */
export const isStopped = (mark: ProcessMark): boolean => {
  const status = readStatus(mark.pid);
  return status?.mark.started === mark.started && status.state.startsWith("T");
};

type ProcessStatus = { readonly mark: ProcessMark; readonly state: string; readonly hasEnded: boolean };

const readStatus = (pid: number): ProcessStatus | undefined => {
  const stat = tryRead(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  if (stat !== undefined) {
    // The name in parentheses may contain anything, so fields are counted from the last parenthesis: state is the 3rd, start time the 22nd.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const state = fields[0] ?? "";
    return { mark: { pid, started: fields[19] ?? "" }, state, hasEnded: state === "Z" || state === "X" };
  }
  if (isLinux()) return undefined;
  const ps = tryRead(() =>
    Bun.spawnSync(["ps", "-o", "stat=,lstart=", "-p", String(pid)])
      .stdout.toString()
      .trim(),
  );
  if (!ps) return undefined;
  return { mark: { pid, started: ps.replace(/^\S+\s+/, "") }, state: ps, hasEnded: ps.startsWith("Z") };
};

/** Returns true if exactly this process is alive. */
export const isAlive = (mark: ProcessMark): boolean => findMark(mark.pid)?.started === mark.started;

/**
 * Returns the processes with this HOME in their environment. These are all processes of a workspace, in any session, except those with a
 * changed HOME. Returns an empty list if the system does not report environments.
 */
export const findProcessesAtHome = (home: string): ProcessMark[] => {
  const homeVariable = `\0HOME=${home}\0`;
  const found: ProcessMark[] = [];
  for (const name of tryRead(() => readdirSync("/proc")) ?? []) {
    if (!/^\d+$/.test(name)) continue;
    const environment = tryRead(() => readFileSync(`/proc/${name}/environ`, "latin1"));
    if (!environment || !`\0${environment}\0`.includes(Buffer.from(homeVariable).toString("latin1"))) continue;
    const mark = findMark(Number(name));
    if (mark) found.push(mark);
  }
  return found;
};

/** Sends a signal to the process, or to its whole process group. Returns false if the process no longer exists. */
export const sendSignal = (mark: ProcessMark, signal: "SIGTERM" | "SIGKILL", group = false): boolean =>
  tryRead(() => process.kill(group ? -mark.pid : mark.pid, signal)) !== undefined;

const isLinux = (): boolean => tryRead(() => readFileSync("/proc/self/stat")) !== undefined;
