// The user that local workspaces run as where the setting `local_workspace_user` names one: who that is on this machine, whether the
// server can become it, and what is done in its name.
import { findSystemUser, isUsableShell, type SystemUser } from "#base/system-user.ts";

/** A user of this machine. Groups are left out on purpose: a workspace has the user's own group and no other. */
export type LocalUser = SystemUser;

/** The user cannot be used; the message says why, in words for administrators. */
export class LocalUserError extends Error {
  override readonly name = "LocalUserError";
}

/** The user of this name. Throws `LocalUserError` when none exists, when it is root, and when this process is not root. */
export const localUser = (name: string, euid = process.geteuid?.()): LocalUser => {
  const refused = (reason: string): LocalUserError => new LocalUserError(`local_workspace_user ${name}: ${reason}`);
  const user = findSystemUser(name);
  if (!user) throw refused("this machine has no such user.");
  if (user.uid === 0) throw refused("is root, which doesn't isolate anything.");
  if (euid !== 0) throw refused("only a server that runs as root can start programs as another user.");
  return { ...user, shell: isUsableShell(user.shell) ? user.shell : "/bin/sh" };
};

/** Runs a program of the system as the user and waits for it; answers what it wrote, empty when it could not be started. */
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
