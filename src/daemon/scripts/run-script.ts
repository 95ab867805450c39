// Runs the text of a script in its own session.
import { parseCommand } from "./command.ts";
import { type ProcessEnd, type ProcessOptions, runProcess } from "./process.ts";

/** Resolves when the script has ended and its output was read. Rejects if it cannot be started. */
export const runScript = async (script: string, options: Omit<ProcessOptions, "command">): Promise<ProcessEnd> => {
  using made = parseCommand(script);
  return await runProcess({ ...options, command: made.command });
};
