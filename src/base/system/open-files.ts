// How many file descriptors the system allows this process, how many it has open, and how many connections that carries.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";

const LIMITS = "/proc/self/limits";
const DESCRIPTORS = "/proc/self/fd";
/** What a server holds without a single connection: its databases, logs, Workers and event loops, with some room. */
const OWN = 32;
/** Enough for any server. */
export const MAX_RESERVE = 256;

/** Returns the limit of open files; undefined where the system does not tell. */
export const openFilesLimit = (): number | undefined => {
  const text = existsSync(LIMITS) ? readFileSync(LIMITS, "utf8") : "";
  const [, limit] = /^Max open files +(\d+)/m.exec(text) ?? [];
  return limit === undefined ? undefined : Number(limit);
};

/** Counts the open descriptors of this process. */
export const countOpenFiles = (): number => {
  const { size } = statSync(DESCRIPTORS);
  return size > 0 ? size : listedOpenFiles();
};

/** Kernels before 6.2 must be asked for a list, which takes a descriptor itself. */
const listedOpenFiles = (): number => {
  try {
    return readdirSync(DESCRIPTORS).length - 1;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EMFILE") throw error;
    return openFilesLimit() ?? 0;
  }
};

/** Returns the descriptors that connections must leave free, so that databases, programs and calls to others can still open theirs. */
export const getReserve = (limit: number): number => Math.min(MAX_RESERVE, Math.floor(limit / 5));

/** Returns how many connections the limit carries, each of which opens `each` descriptors; one at least. */
export const carriedConnections = (limit: number, each: number): number =>
  Math.max(1, Math.floor((limit - OWN - getReserve(limit)) / each));
