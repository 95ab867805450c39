// Turns the text of a script into a command: `sh -c`, or a temporary file if the script names its interpreter or is too long for an
// argument (rule DM-6).
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Disposing removes the file. */
export type ScriptCommand = Disposable & { readonly command: readonly string[] };

// Linux limits one argument to 128 KiB.
const MAX_ARGUMENT = 100_000;

export const parseCommand = (script: string): ScriptCommand => {
  const named = script.startsWith("#!");
  if (!named && Buffer.byteLength(script) <= MAX_ARGUMENT) {
    return { command: ["sh", "-c", script], [Symbol.dispose]: () => {} };
  }
  const folder = mkdtempSync(join(tmpdir(), "slipway-script-"));
  const file = join(folder, "script");
  writeFileSync(file, script, { mode: 0o700 });
  return {
    command: named ? [file] : ["sh", file],
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
};
