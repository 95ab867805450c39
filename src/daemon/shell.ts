// Finds the user's shell for terminals, sessions and scripts (SHELL).
import { findSystemUser, isUsableShell } from "#base/system/system-user.ts";

/** Returns the shell from the environment, else from the password file, else an installed one. */
export const findShell = (env: { readonly SHELL?: string | undefined }): string => {
  const userShell = findSystemUser(process.geteuid?.() ?? 0)?.shell;
  return [env.SHELL, userShell, "/bin/bash", "/bin/sh"].find(isUsableShell) ?? "sh";
};
