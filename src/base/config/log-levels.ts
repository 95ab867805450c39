// Log levels per area: `info`, or `warn,http=debug,db=trace`. Used by the setting log_level of server, daemon and worker. Unknown areas are
// rejected, because they would never log anything.
import type { Level, LogLevels } from "../log.ts";
import type { Kind } from "./kinds.ts";
import { suggestName } from "./suggest.ts";

export const LEVELS: readonly Level[] = ["trace", "debug", "info", "warn", "error"];

/** The areas, which are the first argument of `log(...)`. `trace` logs the outcome of each request (src/base/trace.ts). */
export const AREAS: readonly string[] = [
  ...[
    "agents",
    "applications",
    "audit",
    "backup",
    "builds",
    "chats",
    "daemon",
    "db",
    "docker",
    "external-auth",
    "hooks",
    "http",
  ],
  ...["identity", "local", "mcp", "metrics", "prebuilds", "process", "provisioners", "scheduler", "server", "tailnet"],
  ...["templates", "topics", "trace", "usage", "watch", "worker", "workspaces"],
];

const parseLevel = (text: string): Level | undefined => LEVELS.find((level) => level === text.toLowerCase());

const parse = (text: string): LogLevels | undefined => {
  const parts = text.split(",").map((part) => part.trim().split("="));
  const areas: Record<string, Level> = {};
  let level: Level | undefined;
  for (const [name = "", value, ...more] of parts) {
    const parsed = parseLevel((value ?? name).trim());
    if (parsed === undefined || more.length > 0) return undefined;
    if (value === undefined) {
      if (level !== undefined) return undefined;
      level = parsed;
    } else if (AREAS.includes(name.trim())) areas[name.trim()] = parsed;
    else return undefined;
  }
  return { level: level ?? "info", areas };
};

export const logLevels: Kind<LogLevels> = {
  accepts: `one of ${LEVELS.join(", ")}, optionally with levels for areas, such as warn,http=debug,trace=debug`,
  placeholder: LEVELS.join("|"),
  parse,
  print: ({ level, areas }) =>
    [level, ...Object.entries(areas).map(([area, areaLevel]) => `${area}=${areaLevel}`)].join(","),
  mistake(text) {
    const names = text
      .split(",")
      .flatMap((part) => (part.includes("=") ? [(part.split("=")[0] as string).trim()] : []));
    const unknown = names.find((name) => !AREAS.includes(name));
    return unknown === undefined ? undefined : `there is no area ${unknown}.${suggestName(unknown, AREAS)}`;
  },
};
