// Which shell a person works with here: what terminals, sessions and the scripts of a workspace find as SHELL.
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";

/** The user's own shell: what the environment says, else the password file, else what is there. */
export const findShell = (env: { readonly SHELL?: string | undefined }): string => {
  const candidates = [env.SHELL, shellOfUser(), "/bin/bash", "/bin/sh"];
  return (
    candidates.find((one): one is string => !!one && !/(nologin|false)$/.test(one) && Bun.which(one) !== null) ?? "sh"
  );
};

const shellOfUser = (): string | undefined => {
  try {
    const { username } = userInfo();
    const line = readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .find((one) => one.startsWith(`${username}:`));
    return line?.split(":")[6];
  } catch {
    return undefined;
  }
};
