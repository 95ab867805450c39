// Parses port mappings: `80`, `8080:80`, `0.0.0.0:8080:80`, `[::1]:8080:80`, ranges `8000-8010:9000-9010` and comma-separated lists.
import { usageError } from "#base/usage-error.ts";

export type PortPair = { readonly bind: string; readonly local: number; readonly remote: number };

const LOOPBACK = "127.0.0.1";
const MAX_PAIRS = 1_000;

/** Throws UsageError for invalid ports. */
export const parsePortPairs = (flag: string, given: readonly string[]): PortPair[] => {
  const pairs = given.flatMap((text) => text.split(",")).flatMap((one) => parsePairs(flag, one.trim()));
  if (pairs.length > MAX_PAIRS) throw usageError(flag, `at most ${MAX_PAIRS} ports`);
  return pairs;
};

const parsePairs = (flag: string, text: string): PortPair[] => {
  const rejectPair = (): never => {
    throw usageError(flag, `expected [BIND:]LOCAL[:REMOTE], got ${JSON.stringify(text)}`);
  };
  const [, bracketed, ports = text] = /^\[([^\]]+)\]:(.+)$/.exec(text) ?? [];
  const parts = ports.split(":");
  if (parts.length > (bracketed === undefined ? 3 : 2)) rejectPair();
  const bind = bracketed ?? (parts.length === 3 ? (parts.shift() as string) : LOOPBACK);
  const local = parseRange(parts[0] as string) ?? rejectPair();
  const remote = parts[1] === undefined ? local : (parseRange(parts[1]) ?? rejectPair());
  if (local.length !== remote.length || remote.includes(0)) rejectPair();
  return local.map((port, i) => ({ bind, local: port, remote: remote[i] as number }));
};

/** A local port 0 means any free port. */
const parseRange = (text: string): number[] | undefined => {
  const [, from, to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (from === undefined || last > 65_535 || last < first || last - first >= MAX_PAIRS) return undefined;
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
};
