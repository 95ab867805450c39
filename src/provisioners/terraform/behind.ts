// Programs of Terraform give way to the server where both want the processor: ten runs at once kept it from answering (rule TF-33).
import { writeFileSync } from "node:fs";

const NICENESS = 10;
const nice = Bun.which("nice");

/** Words in front of a command. */
export const BEHIND: readonly string[] = nice === null ? [] : [nice, "-n", `${NICENESS}`];

/**
 * Puts the session of this process behind others, too. Linux may share the processor among sessions before it looks at processes (autogroup in
 * sched(7)), and every command is a session of its own, beside which the server's would be one of many. False: to be tried again, since whoever
 * is not root may do it once in 100 ms.
 */
export const putSessionBehind = (pid: number): boolean => {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, `${NICENESS}`);
    return true;
  } catch (error) {
    // Anything else says that there is no such thing here, or that the process has ended.
    return (error as NodeJS.ErrnoException).code !== "EAGAIN";
  }
};
