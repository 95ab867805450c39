// Checks the state after nodes of a cluster were killed and stopped against the clients' records. Pure.

/**
 * `done`: acknowledged. `refused`: the response says that nothing was written. `unknown`: no response, or a write may have happened.
 */
export type Outcome = "done" | "refused" | "unknown";
export type Write = { readonly name: string; readonly outcome: Outcome };

/** A row in the database, in commit order. */
export type Row = { readonly name: string; readonly epoch: number };

/** Returns the problems; the list is empty if all is well. */
export const checkWrites = (writes: readonly Write[], rows: readonly Row[]): string[] => {
  const counts = new Map<string, number>();
  for (const { name } of rows) counts.set(name, (counts.get(name) ?? 0) + 1);
  const problems = writes.flatMap(({ name, outcome }) => {
    const count = counts.get(name) ?? 0;
    if (outcome === "done" && count === 0) return [`${name} was acknowledged, but is lost`];
    if (outcome === "refused" && count > 0) return [`${name} was refused, but exists`];
    return count > 1 ? [`${name} exists ${count} times`] : [];
  });
  let newest = 0;
  for (const { name, epoch } of rows) {
    if (epoch < newest) problems.push(`${name} was written by epoch ${epoch} after a write of epoch ${newest}`);
    newest = Math.max(newest, epoch);
  }
  return problems;
};
