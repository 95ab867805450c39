// The file descriptor limit of this process, its open descriptors, and the number of connections that the limit allows.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";

const LIMITS_PATH = "/proc/self/limits";
const DESCRIPTORS_PATH = "/proc/self/fd";
/** Descriptors of a server without connections: databases, logs, Workers and event loops, with a margin. */
const BASE_DESCRIPTORS = 32;
/** A reserve of this size is enough for any server. */
export const MAX_RESERVE = 256;

/** Returns the limit of open files; undefined if the system does not report it. */
export const openFilesLimit = (): number | undefined => {
  const text = existsSync(LIMITS_PATH) ? readFileSync(LIMITS_PATH, "utf8") : "";
  const [, limit] = /^Max open files +(\d+)/m.exec(text) ?? [];
  return limit === undefined ? undefined : Number(limit);
};

/** Counts the open descriptors of this process. */
export const countOpenFiles = (): number => {
  const { size } = statSync(DESCRIPTORS_PATH);
  return size > 0 ? size : countDescriptors();
};

/** Lists the descriptors, because kernels before 6.2 do not count them. The list needs a descriptor itself. */
const countDescriptors = (): number => {
  try {
    return readdirSync(DESCRIPTORS_PATH).length - 1;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EMFILE") throw error;
    return openFilesLimit() ?? 0;
  }
};

/** Returns the number of descriptors that connections must leave free for databases, child processes and outgoing calls. */
export const getReserve = (limit: number): number => Math.min(MAX_RESERVE, Math.floor(limit / 5));

/** Returns how many connections fit into the limit if each needs `each` descriptors; at least one. */
export const computeMaxConnections = (limit: number, each: number): number =>
  Math.max(1, Math.floor((limit - BASE_DESCRIPTORS - getReserve(limit)) / each));
