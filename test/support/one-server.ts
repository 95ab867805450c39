// Stories that apply only to a single server, or to one on SQLite files. If the test's server consists of several active nodes, or uses
// PostgreSQL, they are skipped with the reason in their title.
import { test } from "bun:test";
import { asActive } from "./cluster/active-nodes.ts";
import type { Need } from "./needs.ts";
import { onPostgres } from "./postgres-server.ts";

/** Completes the sentence "skipped: ...". */
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

/** A need for use with others (needs.ts). */
export const one = (why: OfOneServer): Need => ({ found: !isLeftOut(why), reason: REASONS[why], file: "" });

/** Does not apply to servers on PostgreSQL, regardless of the number of nodes. */
const OF_SQLITE: readonly OfOneServer[] = ["sqlite", "localOfProcess"];

const isLeftOut = (why: OfOneServer): boolean => (OF_SQLITE.includes(why) ? onPostgres : asActive);

type Run = (...args: never[]) => unknown;

/** `test`, if the server is a single one: `testOfOne("local")("[WK-1] ...", ...)`. */
export const testOfOne = (why: OfOneServer): typeof test => {
  if (!isLeftOut(why)) return test;
  const named = (title: string): string => `${title} (skipped: ${REASONS[why]})`;
  const skip = (title: string, run: Run): void => test.skip(named(title), run as () => void);
  const each = (rows: readonly unknown[]) => (title: string, run: Run) =>
    test.skip.each(rows as unknown[])(named(title), run as never);
  return Object.assign(skip, { each }) as unknown as typeof test;
};
