// Finds the user that local workspaces run as, if the setting `local_workspace_user` names one. Checks that the server can switch to this
// user, and runs programs as this user.
import { findSystemUser, isUsableShell, type SystemUser } from "#base/system/system-user.ts";

/** A user of this machine. A workspace deliberately gets only the user's primary group, without supplementary groups. */
export type LocalUser = SystemUser;

/** Thrown if the user cannot be used. The message is for administrators. */
export class LocalUserError extends Error {
  override readonly name = "LocalUserError";
}

/** Returns the user of this name. Throws `LocalUserError` if it does not exist, if it is root, or if this process is not root. */
export const findLocalUser = (name: string, euid = process.geteuid?.()): LocalUser => {
  const toUserError = (reason: string): LocalUserError => new LocalUserError(`local_workspace_user ${name}: ${reason}`);
  const user = findSystemUser(name);
  if (!user) throw toUserError("this machine has no such user.");
  if (user.uid === 0) throw toUserError("is root, which doesn't isolate anything.");
  if (euid !== 0) throw toUserError("only a server that runs as root can start programs as another user.");
  return { ...user, shell: isUsableShell(user.shell) ? user.shell : "/bin/sh" };
};

/** Runs a system program as the user, waits for its end, and returns its output. */
export const runAs = (user: Pick<LocalUser, "uid" | "gid">, command: readonly string[], cwd = "/"): string =>
  Bun.spawnSync([...command], {
    cwd,
    uid: user.uid,
    gid: user.gid,
    env: { PATH: "/usr/bin:/bin" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
  }).stdout.toString();
