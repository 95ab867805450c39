// Inspects processes of this machine: whether a process is still the one that was started (process IDs are reused), and which processes
// belong to a workspace. Reads /proc on Linux and `ps` elsewhere.
import { readdirSync, readFileSync } from "node:fs";

/** Identifies a started process: its ID, and a value that differs between processes with the same ID. */
export type ProcessMark = { readonly pid: number; readonly started: string };

const quiet = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch {
    return undefined;
  }
};

/** Returns the mark of a living process; undefined if none exists or only a zombie. */
export const findMark = (pid: number): ProcessMark | undefined => {
  const seen = look(pid);
  return seen && !seen.hasEnded ? seen.mark : undefined;
};

/** Returns the mark of a child that was not yet waited for. It may have ended while its own children still run. */
export const markOfChild = (pid: number): ProcessMark | undefined => look(pid)?.mark;

/** Returns true if the process is stopped, by SIGSTOP or as a shell job. */
export const isStopped = (mark: ProcessMark): boolean => {
  const seen = look(mark.pid);
  return seen?.mark.started === mark.started && seen.state.startsWith("T");
};

type Seen = { readonly mark: ProcessMark; readonly state: string; readonly hasEnded: boolean };

const look = (pid: number): Seen | undefined => {
  const stat = quiet(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  if (stat !== undefined) {
    // The name in parentheses may contain anything, so fields are counted from the last parenthesis: state is the 3rd, start time the 22nd.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const state = fields[0] ?? "";
    return { mark: { pid, started: fields[19] ?? "" }, state, hasEnded: state === "Z" || state === "X" };
  }
  if (isLinux()) return undefined;
  const ps = quiet(() =>
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
 * Returns the processes with this HOME in their environment: everything a workspace has started, in any session, unless it hides. Empty if
 * the system does not report environments.
 */
export const findProcessesAtHome = (home: string): ProcessMark[] => {
  const wanted = `\0HOME=${home}\0`;
  const found: ProcessMark[] = [];
  for (const name of quiet(() => readdirSync("/proc")) ?? []) {
    if (!/^\d+$/.test(name)) continue;
    const environment = quiet(() => readFileSync(`/proc/${name}/environ`, "latin1"));
    if (!environment || !`\0${environment}\0`.includes(Buffer.from(wanted).toString("latin1"))) continue;
    const mark = findMark(Number(name));
    if (mark) found.push(mark);
  }
  return found;
};

/** Sends a signal; returns false if the process no longer exists. `group` signals its whole process group. */
export const send = (mark: ProcessMark, signal: "SIGTERM" | "SIGKILL", group = false): boolean =>
  quiet(() => process.kill(group ? -mark.pid : mark.pid, signal)) !== undefined;

const isLinux = (): boolean => quiet(() => readFileSync("/proc/self/stat")) !== undefined;
