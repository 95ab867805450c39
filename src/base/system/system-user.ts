// Looks up users of this machine in the password file and the system's other sources. The runtime's own lookup uses USER and SHELL, which a
// service may not have.
import { readRegularText } from "./regular-file.ts";

export type SystemUser = { readonly name: string; readonly uid: number; readonly gid: number; readonly shell: string };

const parseLine = (line: string): SystemUser | undefined => {
  const [name = "", , uid = "", gid = "", , , shell = ""] = line.split(":");
  return name === "" || uid === "" || gid === "" ? undefined : { name, uid: Number(uid), gid: Number(gid), shell };
};

/** Timeout of the lookup in the system's other sources, which may use the network. */
const LOOKUP_TIMEOUT_MS = 5_000;

/** Returns the text of the password file; empty if it is missing or no regular file. */
export const readPasswordFile = (): string => readRegularText("/etc/passwd") ?? "";

/** Returns the user with this name or number; undefined if the system has no such user. */
export const findSystemUser = (user: string | number): SystemUser | undefined => {
  const isRequested = (one: SystemUser): boolean => (typeof user === "string" ? one.name : one.uid) === user;
  const find = (text: string): SystemUser | undefined =>
    text
      .split("\n")
      .flatMap((line) => parseLine(line) ?? [])
      .find(isRequested);
  const local = find(readPasswordFile());
  if (local || !Bun.which("getent")) return local;
  const lookup = { env: {}, timeout: LOOKUP_TIMEOUT_MS, killSignal: "SIGKILL" } as const;
  return find(Bun.spawnSync(["getent", "passwd", String(user)], lookup).stdout.toString());
};

/** Returns whether people can use the shell: service accounts have one that rejects everyone. */
export const isUsableShell = (shell: string | undefined): shell is string =>
  !!shell && !/\/(nologin|false)$/.test(shell) && Bun.which(shell) !== null;
