// Runs the text of a script in its own session.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ProcessEnd, type ProcessOptions, runProcess } from "./process.ts";

/** Disposing removes the file. */
type ScriptCommand = Disposable & { readonly command: readonly string[] };

// Linux limits one argument to 128 KiB.
const MAX_ARGUMENT_BYTES = 100_000;

/** Returns `sh -c`, or a temporary file if the script names its interpreter or is too long for an argument (rule DM-6). */
const createCommand = (script: string): ScriptCommand => {
  const hasInterpreter = script.startsWith("#!");
  if (!hasInterpreter && Buffer.byteLength(script) <= MAX_ARGUMENT_BYTES) {
    return { command: ["sh", "-c", script], [Symbol.dispose]: () => {} };
  }
  const folder = mkdtempSync(join(tmpdir(), "slipway-script-"));
  const file = join(folder, "script");
  writeFileSync(file, script, { mode: 0o700 });
  return {
    command: hasInterpreter ? [file] : ["sh", file],
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
};

/** Resolves when the script has ended and its output was read. Rejects if it cannot be started. */
export const runScript = async (script: string, options: Omit<ProcessOptions, "command">): Promise<ProcessEnd> => {
  using scriptCommand = createCommand(script);
  return await runProcess({ ...options, command: scriptCommand.command });
};
