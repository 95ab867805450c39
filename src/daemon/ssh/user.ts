// The name of the user that the daemon runs as, for programs that read it from their environment. [WN-1]
import { readFileSync } from "node:fs";

/** Returns the name from the password file, or else from the environment. */
export const getUserName = (env: Readonly<Record<string, string>>): string => {
  const uid = String(process.getuid?.() ?? -1);
  try {
    for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
      const [name, , id] = line.split(":");
      if (name && id === uid) return name;
    }
  } catch {
    // The system has no such file.
  }
  return env.USER || env.LOGNAME || "user";
};
