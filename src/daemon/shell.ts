// Which shell a person works with here: what terminals, sessions and the scripts of a workspace find as SHELL.
import { findSystemUser, isUsableShell } from "#base/system-user.ts";

/** The user's own shell: what the environment says, else the password file, else what is there. */
export const findShell = (env: { readonly SHELL?: string | undefined }): string => {
  const own = findSystemUser(process.geteuid?.() ?? 0)?.shell;
  return [env.SHELL, own, "/bin/bash", "/bin/sh"].find(isUsableShell) ?? "sh";
};
