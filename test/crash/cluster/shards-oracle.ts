// Checks, for clusters in which every node is active, that only a shard's owner writes to the shard and that the runs of a job never
// overlap. The events come from a test table (shard-events.ts), in the order of writing. Pure.
/**
 * `given`: the shard now belongs to `node`, a node's name with its epoch. `wrote`: a row of the shard was written. `began`, `logged` and
 * `ended`: the job `what` started, logged a line or ended. `writer` is a database connection, which belongs to one node for its whole
 * life.
 */
export type ShardEvent =
  | { readonly kind: "given"; readonly part: number; readonly node: string }
  | {
      readonly kind: "wrote" | "began" | "logged" | "ended";
      readonly part: number;
      readonly writer: string;
      readonly what: string;
      readonly line?: string;
    };

/** The current run of a job: the ownership of the shard under which it started, and its log lines. */
type JobRun = { readonly ownership: string; readonly lines: Set<string>; isOver: boolean };

/**
 * Returns the problems, or an empty list. A connection belongs to the node whose shard it writes to first; if it later writes to
 * another node's shard, it wrote after a handover. A shard moves only between commit groups, so the table is in commit order. The next
 * owner of a shard starts its jobs over, even if it has owned the shard before. A job's log shows whether one run ended before the next
 * one started: concurrent runs write their lines twice, or continue after the end.
 */
export const checkShardEvents = (events: readonly ShardEvent[]): string[] => {
  const owners = new Map<number, string>();
  const writers = new Map<string, string>();
  const assignmentCounts = new Map<number, number>();
  const runs = new Map<string, JobRun>();
  const problems: string[] = [];
  for (const event of events) {
    const { part } = event;
    if (event.kind === "given") {
      owners.set(part, event.node);
      assignmentCounts.set(part, (assignmentCounts.get(part) ?? 0) + 1);
      continue;
    }
    const { writer, what } = event;
    const owner = owners.get(part) ?? "no node";
    const node = writers.get(writer) ?? owner;
    writers.set(writer, node);
    if (node !== owner || owner === "no node")
      problems.push(`${what} of part ${part} was written by ${node} while ${owner} owned it`);
    if (event.kind === "wrote") continue;
    const ownership = `${owner}, assignment ${assignmentCounts.get(part) ?? 0}`;
    problems.push(
      ...checkJobEvent(runs, event, ownership).map((problem) => `${what} of part ${part} ${problem} ${owner}`),
    );
  }
  return problems;
};

/** Returns what is wrong with a job's event, as text that a node's name follows. */
const checkJobEvent = (
  runs: Map<string, JobRun>,
  { kind, what, line = "" }: Exclude<ShardEvent, { readonly kind: "given" }>,
  ownership: string,
): string[] => {
  const run = runs.get(what);
  const problems = run?.isOver ? [`${kind} after its end by`] : [];
  if (kind === "began") {
    if (run?.ownership === ownership) problems.push("was started twice by");
    runs.set(what, { ownership, lines: new Set(), isOver: false });
    return problems;
  }
  if (kind === "logged" && run?.lines.has(line)) problems.push(`logged "${line}" twice by`);
  run?.lines.add(line);
  if (run && kind === "ended") run.isOver = true;
  return problems;
};
