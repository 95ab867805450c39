// Looking at processes of this machine: whether a process is still the one that was started (ids are used again), and which ones
// belong to a workspace. On Linux from /proc; elsewhere from `ps`.
import { readdirSync, readFileSync } from "node:fs";

/** A process that was started once: its id, and a mark that no other process with the same id has. */
export type ProcessMark = { readonly pid: number; readonly started: string };

const quiet = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch {
    return undefined;
  }
};

/** The mark of a living process; undefined when none exists, or only what it left to its parent to collect. */
export const findMark = (pid: number): ProcessMark | undefined => {
  const seen = look(pid);
  return seen && !seen.hasEnded ? seen.mark : undefined;
};

/** The mark of a process that this one has started and not collected yet: it may have ended already, and what it has started may not. */
export const markOfChild = (pid: number): ProcessMark | undefined => look(pid)?.mark;

/** True while the process of the mark stands still, by SIGSTOP or as a job of a shell. */
export const isStopped = (mark: ProcessMark): boolean => {
  const seen = look(mark.pid);
  return seen?.mark.started === mark.started && seen.state.startsWith("T");
};

type Seen = { readonly mark: ProcessMark; readonly state: string; readonly hasEnded: boolean };

const look = (pid: number): Seen | undefined => {
  const stat = quiet(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  if (stat !== undefined) {
    // The name in parentheses may hold anything, so fields count from the last parenthesis: state is the 3rd, start time the 22nd.
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

/** True while the very process of the mark lives. */
export const isAlive = (mark: ProcessMark): boolean => findMark(mark.pid)?.started === mark.started;

/**
 * Processes whose environment has this HOME: everything a workspace has started and not disguised, whatever session it put itself
 * into. Empty where the system does not tell.
 */
export const processesAtHome = (home: string): ProcessMark[] => {
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

/** Sends a signal; false when the process no longer exists. `group` reaches its whole process group. */
export const send = (mark: ProcessMark, signal: "SIGTERM" | "SIGKILL", group = false): boolean =>
  quiet(() => process.kill(group ? -mark.pid : mark.pid, signal)) !== undefined;

const isLinux = (): boolean => quiet(() => readFileSync("/proc/self/stat")) !== undefined;
