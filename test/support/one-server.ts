// Stories that apply only to a server of one process, or only to a server on SQLite files. If the test's server consists of several active
// nodes, or uses PostgreSQL, they are skipped with the reason in their title.
import { test } from "bun:test";
import { usesActiveNodes } from "./cluster/active-nodes.ts";
import type { Need } from "./needs.ts";
import { usesPostgres } from "./postgres-server.ts";

/** Completes the sentence "skipped: ...". */
const REASONS = {
  local: "local workspaces belong to one machine, so clusters do not support them",
  needsLocalServerProcess:
    "on PostgreSQL, a separate server process is a node, and nodes do not support local workspaces",
  engine: "other nodes cannot reach an engine on the server's machine",
  counts: "nodes share their counters with a delay",
  memory: "it inspects the memory of one process",
  sqlite: "PostgreSQL works differently",
  process: "it starts its own server as a single process",
} as const;

export type SingleServerReason = keyof typeof REASONS;

/** Returns the reason as a need, for testNeeding() (needs.ts). */
export const requireSingleServer = (reason: SingleServerReason): Need => ({
  found: !isSkipped(reason),
  reason: REASONS[reason],
  file: "",
});

/** Does not apply to servers on PostgreSQL, regardless of the number of nodes. */
const SQLITE_REASONS: readonly SingleServerReason[] = ["sqlite", "needsLocalServerProcess"];

const isSkipped = (reason: SingleServerReason): boolean =>
  SQLITE_REASONS.includes(reason) ? usesPostgres : usesActiveNodes;

type TestBody = (...args: never[]) => unknown;

/** `test`, if the server is a single one: `testSingleServer("local")("[WK-1] ...", ...)`. */
export const testSingleServer = (reason: SingleServerReason): typeof test => {
  if (!isSkipped(reason)) return test;
  const toSkippedTitle = (title: string): string => `${title} (skipped: ${REASONS[reason]})`;
  const skip = (title: string, run: TestBody): void => test.skip(toSkippedTitle(title), run as () => void);
  const skipEach = (rows: readonly unknown[]) => (title: string, run: TestBody) =>
    test.skip.each(rows as unknown[])(toSkippedTitle(title), run as never);
  return Object.assign(skip, { each: skipEach }) as unknown as typeof test;
};
