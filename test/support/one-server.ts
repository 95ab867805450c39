// Stories that can be notified of one server only, or of one with files of SQLite. Where a test's server is several nodes that all work, or keeps its
// data in PostgreSQL, they are skipped, by name and with the reason in their title.
import { test } from "bun:test";
import { asActive } from "./cluster/active-nodes.ts";
import type { Need } from "./needs.ts";
import { onPostgres } from "./postgres-server.ts";

/** To finish the sentence "skipped: ...". */
const REASONS = {
  local: "local workspaces belong to one machine; nodes refuse them",
  localOfProcess: "a server that is a process of its own is a node on PostgreSQL, and nodes refuse local workspaces",
  engine: "an engine on the machine of the server is not one that every node reaches",
  counts: "nodes tell each other of what they have counted a moment later",
  memory: "it looks into the memory of one process",
  sqlite: "PostgreSQL has a way of its own",
  process: "it starts a server of its own, as one process",
} as const;

export type OfOneServer = keyof typeof REASONS;

/** The same alongside what else a test needs (needs.ts). */
export const one = (why: OfOneServer): Need => ({ found: !isLeftOut(why), reason: REASONS[why], file: "" });

/** What no server on PostgreSQL can tell, however many nodes it is. */
const OF_SQLITE: readonly OfOneServer[] = ["sqlite", "localOfProcess"];

const isLeftOut = (why: OfOneServer): boolean => (OF_SQLITE.includes(why) ? onPostgres : asActive);

type Run = (...args: never[]) => unknown;

/** `test`, where the server is one: `testOfOne("local")("[WK-1] ...", ...)`. */
export const testOfOne = (why: OfOneServer): typeof test => {
  if (!isLeftOut(why)) return test;
  const named = (title: string): string => `${title} (skipped: ${REASONS[why]})`;
  const skip = (title: string, run: Run): void => test.skip(named(title), run as () => void);
  const each = (rows: readonly unknown[]) => (title: string, run: Run) =>
    test.skip.each(rows as unknown[])(named(title), run as never);
  return Object.assign(skip, { each }) as unknown as typeof test;
};
