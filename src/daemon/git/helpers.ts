// Makes git of a workspace work without set-up (rules EA-17 to EA-19): its environment names this program as git's ssh and as the one git
// asks for passwords. What the template or the person's own environment says goes first.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { log } from "#base/log.ts";
import { ownProgram } from "../own-program.ts";

/** Variables for the programs of the workspace. Disposing removes what they name. */
export type GitHelpers = Disposable & { readonly env: Readonly<Record<string, string>> };

/** Never throws: a workspace whose temp folder is full works without. */
export const gitHelpers = (program: readonly string[] = ownProgram()): GitHelpers => {
  const command = program.map(quotedForShell).join(" ");
  // Git would try out whether the command is OpenSSH; it is.
  const ssh = { GIT_SSH_COMMAND: `${command} gitssh`, GIT_SSH_VARIANT: "ssh" };
  try {
    // Git runs one file, without a shell and without arguments of ours.
    const folder = mkdtempSync(join(tmpdir(), "slipway-git-"));
    const askpass = join(folder, "askpass");
    writeFileSync(askpass, `#!/bin/sh\nexec ${command} gitaskpass "$@"\n`, { mode: 0o700 });
    return {
      env: { ...ssh, GIT_ASKPASS: askpass },
      [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
    };
  } catch (error) {
    log("daemon").error("git will not find linked accounts: {error}", { error });
    return { env: ssh, [Symbol.dispose]: () => {} };
  }
};

/** One word of a command for a shell. */
export const quotedForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
