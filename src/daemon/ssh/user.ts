// The name of the user that the daemon runs as, for programs that ask their environment. [WN-1]
import { readFileSync } from "node:fs";

/** From the password file; what the environment says where none exists. */
export const userName = (env: Readonly<Record<string, string>>): string => {
  const uid = String(process.getuid?.() ?? -1);
  try {
    for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
      const [name, , id] = line.split(":");
      if (name && id === uid) return name;
    }
  } catch {
    // No such file on this system.
  }
  return env.USER || env.LOGNAME || "user";
};
