// Where every node is active: who has written for which part, in the order of writing, and whether it had the part then. A table of the test's own
// says so (part-events.ts); what it means is judged here. Pure.
/**
 * `given`: a part is `node`'s from here on, a node's name with its epoch. `wrote`: something of the part was written. `began`, `said` and `ended`: a
 * job was begun, its log got a line, it has ended; `what` names it. `writer` is a connection, which is one node's for as long as it lives.
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

/** A job since it was begun last: in which giving of its part, and what it has said. */
type Run = { readonly of: string; readonly lines: Set<string>; isOver: boolean };

/**
 * What is wrong, in words; empty: nothing. Whose a connection is follows from the parts that it writes: with a second owner it has written for a part
 * that was given away. Moving a part waits for groups that hold it, so the order of the table is that of commits.
 *
 * A job continues with the next owner of its part, and starts over: also at the node that had it before, once others have had the part in between. That
 * one run of it has ended before the next one begins is seen by its log: two at once say their lines twice, or go on after the end.
 */
export const judgeParts = (events: readonly PartEvent[]): string[] => {
  const owners = new Map<number, string>();
  const writers = new Map<string, string>();
  const givings = new Map<number, number>();
  const runs = new Map<string, Run>();
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
    wrong.push(...judgeRun(runs, event, of).map((one) => `${what} of part ${part} ${one} ${owner}`));
  }
  return wrong;
};

/** What is wrong with what happens to a job now, in words before a node's name. */
const judgeRun = (
  runs: Map<string, Run>,
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
