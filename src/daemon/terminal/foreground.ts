// Finds the current folder of a terminal: that of its foreground program, as reported by Linux.
import { readFileSync, readlinkSync } from "node:fs";

/** `leader` is the terminal's first process. Returns undefined if the system does not report the folder. */
export const findForegroundFolder = (leader: number): string | undefined =>
  findFolder(findForeground(leader) ?? leader) ?? findFolder(leader);

/** Returns the leader of the foreground group; the name in `stat` may contain spaces and parentheses. */
const findForeground = (pid: number): number | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [, , , , , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(group) > 0 ? Number(group) : undefined;
  } catch {
    return undefined;
  }
};

const findFolder = (pid: number): string | undefined => {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
};
