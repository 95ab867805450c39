// If every node is active: who has written to which shard, in the order of writing, and whether it owned the shard then. A test table
// records this (part-events.ts), and this judges it. Pure.
/**
 * `given`: from here on, the shard belongs to `node`, a node's name with its epoch. `wrote`: something in the shard was written. `began`,
 * `said` and `ended`: a job started, logged a line, ended; `what` names it. `writer` is a connection, which belongs to one node for its
 * whole life.
 */
export type PartEvent =
  | { readonly kind: "given"; readonly part: number; readonly node: string }
  | {
      readonly kind: "wrote" | "began" | "said" | "ended";
      readonly part: number;
      readonly writer: string;
      readonly what: string;
      readonly line?: string;
    };

/** A job since its last start: under which ownership of its shard, and its log lines. */
type JobRun = { readonly of: string; readonly lines: Set<string>; isOver: boolean };

/**
 * Returns the problems; empty if none. A connection's node follows from the shards it writes to: with a second owner, it has written to a
 * shard that was handed over. Moving a shard waits for commit groups that hold it, so the table's order is that of commits. A job continues
 * with the next owner of its shard, and starts over, also at an earlier owner once others have had the shard in between. Its log shows
 * whether one run has ended before the next one starts: concurrent runs write their lines twice, or continue after the end.
 */
export const checkPartEvents = (events: readonly PartEvent[]): string[] => {
  const owners = new Map<number, string>();
  const writers = new Map<string, string>();
  const givings = new Map<number, number>();
  const runs = new Map<string, JobRun>();
  const wrong: string[] = [];
  for (const event of events) {
    const { part } = event;
    if (event.kind === "given") {
      owners.set(part, event.node);
      givings.set(part, (givings.get(part) ?? 0) + 1);
      continue;
    }
    const { writer, what } = event;
    const owner = owners.get(part) ?? "nobody";
    const node = writers.get(writer) ?? owner;
    writers.set(writer, node);
    if (node !== owner || owner === "nobody")
      wrong.push(`${what} of part ${part} was written by ${node} while ${owner} had it`);
    if (event.kind === "wrote") continue;
    const of = `${owner}, giving ${givings.get(part) ?? 0}`;
    wrong.push(...checkJobEvent(runs, event, of).map((one) => `${what} of part ${part} ${one} ${owner}`));
  }
  return wrong;
};

/** Returns what is wrong with a job's event, as text to precede a node's name. */
const checkJobEvent = (
  runs: Map<string, JobRun>,
  { kind, what, line = "" }: Exclude<PartEvent, { readonly kind: "given" }>,
  of: string,
): string[] => {
  const run = runs.get(what);
  const wrong = run?.isOver ? [`${kind} after its end by`] : [];
  if (kind === "began") {
    if (run?.of === of) wrong.push("was begun twice by");
    runs.set(what, { of, lines: new Set(), isOver: false });
    return wrong;
  }
  if (kind === "said" && run?.lines.has(line)) wrong.push(`said "${line}" twice by`);
  run?.lines.add(line);
  if (run && kind === "ended") run.isOver = true;
  return wrong;
};
