// The name of the user that the daemon runs as, for programs that read it from their environment. [WN-1]
import { readPasswordFile } from "#base/system/system-user.ts";

/** Returns the name from the password file, or else from the environment. */
export const getUserName = (env: Readonly<Record<string, string>>): string => {
  const uid = String(process.getuid?.() ?? -1);
  for (const line of readPasswordFile().split("\n")) {
    const [name, , id] = line.split(":");
    if (name && id === uid) return name;
  }
  return env.USER || env.LOGNAME || "user";
};
