// A folder at the end of the path of everything that the daemon starts (rule DM-22): it holds this program, by its own name and by the one
// that templates of the ecosystem call it by, and takes what scripts of the workspace put there. Alongside it each script has a folder of its own.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { log } from "#base/log.ts";
import { quotedForShell } from "./git/helpers.ts";
import { ownProgram } from "./own-program.ts";

/** What a system without a path of its own would look through. */
const USUAL = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const NAMES = ["slipway", "coder"];

export type BinFolder = Disposable & {
  /** Where scripts may put programs; empty when none could be made. */
  readonly env: Readonly<Record<string, string>>;
  /** The path with the folder behind it. */
  pathWith(path: string | undefined): string;
  /** The variables of one script; `name` tells it from others. */
  envOf(name: string): Readonly<Record<string, string>>;
};

/** Never throws: a workspace whose temp folder is full works without. */
export const binFolder = (program: readonly string[] = ownProgram()): BinFolder => {
  try {
    const folder = mkdtempSync(join(tmpdir(), "slipway-bin-"));
    const bin = join(folder, "bin");
    mkdirSync(bin);
    // Scripts start programs as other users, too.
    for (const one of [folder, bin]) chmodSync(one, 0o755);
    const text = `#!/bin/sh\nexec ${program.map(quotedForShell).join(" ")} "$@"\n`;
    for (const name of NAMES) writeFileSync(join(bin, name), text, { mode: 0o755 });
    return {
      env: { CODER_SCRIPT_BIN_DIR: bin },
      pathWith: (path = USUAL) => `${path}${delimiter}${bin}`,
      envOf: (name) => makeVariables(folder, name),
      [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
    };
  } catch (error) {
    log("daemon").error("programs of the workspace will not find this one: {error}", { error });
    return { env: {}, pathWith: (path = USUAL) => path, envOf: () => ({}), [Symbol.dispose]: () => {} };
  }
};

const makeVariables = (folder: string, name: string): Record<string, string> => {
  const data = join(folder, "data", name);
  try {
    mkdirSync(data, { recursive: true });
    return { CODER_SCRIPT_DATA_DIR: data };
  } catch {
    // The temp folder is full, or someone has tidied it up: the script says what it misses.
    return {};
  }
};
