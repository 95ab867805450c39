// Runs the text of a script in a session of its own.
import { parseCommand } from "./command.ts";
import { type ProcessEnd, type ProcessOptions, runProcess } from "./process.ts";

/** Resolves when it has ended and its output was read. Rejects when it cannot be started. */
export const runScript = async (script: string, options: Omit<ProcessOptions, "command">): Promise<ProcessEnd> => {
  using made = parseCommand(script);
  return await runProcess({ ...options, command: made.command });
};
