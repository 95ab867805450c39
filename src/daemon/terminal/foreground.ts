// In which folder a person is who looks at a terminal: that of the program in the foreground, as Linux tells it.
import { readFileSync, readlinkSync } from "node:fs";

/** `leader` is the process that the terminal was made for. Undefined where the system does not say. */
export const folderOfForeground = (leader: number): string | undefined =>
  findFolder(findForeground(leader) ?? leader) ?? findFolder(leader);

/** The leader of the group that reads the keyboard; the name in `stat` may hold blanks and brackets. */
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
