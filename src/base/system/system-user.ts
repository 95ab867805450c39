// Looks up users of this machine in the password file and the system's other sources. The runtime's own lookup uses USER and SHELL, which a
// service may not have.
import { readFileSync } from "node:fs";

export type SystemUser = { readonly name: string; readonly uid: number; readonly gid: number; readonly shell: string };

const parseLine = (line: string): SystemUser | undefined => {
  const [name = "", , uid = "", gid = "", , , shell = ""] = line.split(":");
  return name === "" || uid === "" || gid === "" ? undefined : { name, uid: Number(uid), gid: Number(gid), shell };
};

const readPasswordFile = (): string => {
  try {
    return readFileSync("/etc/passwd", "utf8");
  } catch {
    return "";
  }
};

/** Returns the user with this name or number; undefined if none exists. */
export const findSystemUser = (user: string | number): SystemUser | undefined => {
  const isMeant = (one: SystemUser): boolean => (typeof user === "string" ? one.name : one.uid) === user;
  const find = (text: string): SystemUser | undefined =>
    text
      .split("\n")
      .flatMap((line) => parseLine(line) ?? [])
      .find(isMeant);
  const known = find(readPasswordFile());
  if (known || !Bun.which("getent")) return known;
  return find(Bun.spawnSync(["getent", "passwd", String(user)], { env: {} }).stdout.toString());
};

/** Returns whether people can use the shell: service accounts have one that rejects everyone. */
export const isUsableShell = (shell: string | undefined): shell is string =>
  !!shell && !/\/(nologin|false)$/.test(shell) && Bun.which(shell) !== null;
