// The expected state after nodes of a cluster were killed and stopped, judged from the clients' own records. Pure.

/**
 * `done`: acknowledged. `refused`: the response says that nothing was written. `unknown`: no response, or one that says it may have been.
 */
export type Outcome = "done" | "refused" | "unknown";
export type Write = { readonly name: string; readonly outcome: Outcome };

/** A row in the database, in commit order. */
export type Row = { readonly name: string; readonly epoch: number };

/** Returns the problems; empty if none. */
export const checkWrites = (writes: readonly Write[], rows: readonly Row[]): string[] => {
  const counts = new Map<string, number>();
  for (const { name } of rows) counts.set(name, (counts.get(name) ?? 0) + 1);
  const problems = writes.flatMap(({ name, outcome }) => {
    const count = counts.get(name) ?? 0;
    if (outcome === "done" && count === 0) return [`${name} was acknowledged and is lost`];
    if (outcome === "refused" && count > 0) return [`${name} was refused and is there`];
    return count > 1 ? [`${name} is there ${count} times`] : [];
  });
  let newest = 0;
  for (const { name, epoch } of rows) {
    if (epoch < newest) problems.push(`${name} was written by epoch ${epoch} after one of epoch ${newest}`);
    newest = Math.max(newest, epoch);
  }
  return problems;
};
