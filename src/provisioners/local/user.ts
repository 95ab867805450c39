// The user that local workspaces run as where the setting `local_workspace_user` names one: who that is on this machine, whether the
// server can become it, and what is done in its name.
import { readFileSync } from "node:fs";

/** A user of this machine. Groups are left out on purpose: a workspace has the user's own group and no other. */
export type LocalUser = { readonly name: string; readonly uid: number; readonly gid: number; readonly shell: string };

/** The user cannot be used; the message says why, in words for administrators. */
export class LocalUserError extends Error {
  override readonly name = "LocalUserError";
}

const findLine = (text: string, name: string): string | undefined =>
  text.split("\n").find((line) => line.startsWith(`${name}:`));

/** The line of the user in the form of passwd(5): from the file, else from the system's other sources. */
const passwdLine = (name: string): string | undefined => {
  const known = findLine(readFileSync("/etc/passwd", "utf8"), name);
  if (known !== undefined || !Bun.which("getent")) return known;
  return findLine(Bun.spawnSync(["getent", "passwd", name], { env: {} }).stdout.toString(), name);
};

/** The user of this name. Throws `LocalUserError` when none exists, when it is root, and when this process is not root. */
export const localUser = (name: string, euid = process.geteuid?.()): LocalUser => {
  const refused = (reason: string): LocalUserError => new LocalUserError(`local_workspace_user ${name}: ${reason}`);
  const [, , uid, gid, , , shell] = passwdLine(name)?.split(":") ?? [];
  if (uid === undefined || gid === undefined) throw refused("this machine has no such user.");
  if (Number(uid) === 0) throw refused("is root, which separates nothing.");
  if (euid !== 0) throw refused("only a server that runs as root can start programs as another user.");
  // Service accounts have a shell that refuses everyone; workspaces need one that works.
  const usable = shell && !/\/(nologin|false)$/.test(shell) ? shell : "/bin/sh";
  return { name, uid: Number(uid), gid: Number(gid), shell: usable };
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
