// Makes git work in a workspace without setup (rules EA-17 to EA-19): environment variables name this program as git's ssh command and
// askpass program. Settings of the template or of the user's environment take precedence.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { log } from "#base/log.ts";
import { quoteForShell } from "#base/text/shell-quote.ts";
import { getOwnCommand } from "../own-program.ts";

/** Variables for the workspace's programs. Disposing removes the files that the variables name. */
export type GitHelpers = Disposable & { readonly env: Readonly<Record<string, string>> };

/** Never throws: a workspace with a full temp folder works without the helpers. */
export const createGitHelpers = (program: readonly string[] = getOwnCommand()): GitHelpers => {
  const command = program.map(quoteForShell).join(" ");
  // Otherwise git would probe whether the command is OpenSSH; it is compatible.
  const ssh = { GIT_SSH_COMMAND: `${command} gitssh`, GIT_SSH_VARIANT: "ssh" };
  try {
    // Git runs a single file as askpass, without a shell or extra arguments.
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
