// Creates a folder that is appended to the PATH of every program that the daemon starts (rule DM-22). It contains Slipway, under its own
// name and under the name that existing templates use, and the programs that the workspace's scripts add. Each script also gets a data
// folder.

import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { log } from "#base/log.ts";
import { quoteForShell } from "#base/text/shell-quote.ts";
import { getOwnCommand } from "./own-program.ts";

/** The PATH to assume on a system that sets none. */
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const NAMES = ["slipway", "coder"];

export type BinFolder = Disposable & {
  /** The variable that tells scripts where to put programs. Empty if the folder could not be created. */
  readonly env: Readonly<Record<string, string>>;
  /** Returns the path with the folder appended. */
  appendTo(path: string | undefined): string;
  /** Returns the variables for one script; `name` identifies the script. */
  createScriptEnv(name: string): Readonly<Record<string, string>>;
};

/** Creates the folder. Never throws: a workspace with a full temp folder works without this folder. */
export const createBinFolder = (program: readonly string[] = getOwnCommand()): BinFolder => {
  try {
    const folder = mkdtempSync(join(tmpdir(), "slipway-bin-"));
    const bin = join(folder, "bin");
    mkdirSync(bin);
    // Scripts also start programs as other users.
    for (const path of [folder, bin]) chmodSync(path, 0o755);
    const script = `#!/bin/sh\nexec ${program.map(quoteForShell).join(" ")} "$@"\n`;
    for (const name of NAMES) writeFileSync(join(bin, name), script, { mode: 0o755 });
    return {
      env: { CODER_SCRIPT_BIN_DIR: bin },
      appendTo: (path = DEFAULT_PATH) => `${path}${delimiter}${bin}`,
      createScriptEnv: (name) => createDataFolder(folder, name),
      [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
    };
  } catch (error) {
    log("daemon").error("programs of the workspace will not find the slipway command: {error}", { error });
    return {
      env: {},
      appendTo: (path = DEFAULT_PATH) => path,
      createScriptEnv: () => ({}),
      [Symbol.dispose]: () => {},
    };
  }
};

const createDataFolder = (folder: string, name: string): Record<string, string> => {
  const data = join(folder, "data", name);
  try {
    mkdirSync(data, { recursive: true });
    return { CODER_SCRIPT_DATA_DIR: data };
  } catch {
    // The temp folder is full or has been cleaned up. A script that needs its data folder fails with its own error.
    return {};
  }
};
