// Creates a unified diff of an edit with three lines of context. Common lines at the beginning and end are skipped first, so a small change
// in a large file is cheap; the rest is compared by the shortest edit script, up to a bound. Pure.

const CONTEXT_LINES = 3;
/** With more changed lines than this, everything between the common beginning and end is shown as replaced. */
const MAX_CHANGES = 400;

type Op = { readonly kind: " " | "-" | "+"; readonly line: string };

/** Returns an empty string if nothing has changed. */
export const createUnifiedDiff = (path: string, before: string, after: string): string => {
  if (before === after) return "";
  const [a, b] = [splitLines(before), splitLines(after)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail])
    tail += 1;
  const from = Math.max(0, head - CONTEXT_LINES);
  const ops: Op[] = [
    ...a.slice(from, head).map(keepLine),
    ...computeEdits(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail, a.length - tail + CONTEXT_LINES).map(keepLine),
  ];
  return `--- ${path}\n+++ ${path}\n${groupHunks(ops, from)}`;
};

const splitLines = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

const keepLine = (line: string): Op => ({ kind: " ", line });

/** Myers' algorithm, which keeps the frontier of each round for backtracking. */
const computeEdits = (a: readonly string[], b: readonly string[]): Op[] => {
  const [n, m] = [a.length, b.length];
  const frontiers: Map<number, number>[] = [];
  let frontier = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(n + m, MAX_CHANGES); d += 1) {
    frontiers.push(frontier);
    const next = new Map(frontier);
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && furthestAt(next, k - 1) < furthestAt(next, k + 1));
      let x = down ? furthestAt(next, k + 1) : furthestAt(next, k - 1) + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x += 1;
      next.set(k, x);
      if (x >= n && x - k >= m) return walkBack(a, b, frontiers, d);
    }
    frontier = next;
  }
  return [...a.map((line): Op => ({ kind: "-", line })), ...b.map((line): Op => ({ kind: "+", line }))];
};

const furthestAt = (frontier: ReadonlyMap<number, number>, k: number): number => frontier.get(k) ?? -1;

const walkBack = (
  a: readonly string[],
  b: readonly string[],
  frontiers: readonly Map<number, number>[],
  editCount: number,
): Op[] => {
  const ops: Op[] = [];
  let [x, y] = [a.length, b.length];
  for (let d = editCount; d >= 0; d -= 1) {
    const frontier = frontiers[d] ?? new Map<number, number>();
    const k = x - y;
    const down = k === -d || (k !== d && furthestAt(frontier, k - 1) < furthestAt(frontier, k + 1));
    const earlier = down ? k + 1 : k - 1;
    const [px, py] = d === 0 ? [0, 0] : [furthestAt(frontier, earlier), furthestAt(frontier, earlier) - earlier];
    while (x > px && y > py) {
      x -= 1;
      y -= 1;
      ops.push(keepLine(a[x] ?? ""));
    }
    if (d === 0) break;
    if (down) {
      y -= 1;
      ops.push({ kind: "+", line: b[y] ?? "" });
    } else {
      x -= 1;
      ops.push({ kind: "-", line: a[x] ?? "" });
    }
  }
  return ops.reverse();
};

/** Changes closer than twice the context share a hunk. */
const groupHunks = (ops: readonly Op[], from: number): string => {
  const changed = ops.flatMap(({ kind }, index) => (kind === " " ? [] : [index]));
  const spans: [number, number][] = [];
  for (const index of changed) {
    const last = spans.at(-1);
    if (last && index - last[1] <= 2 * CONTEXT_LINES) last[1] = index;
    else spans.push([index, index]);
  }
  return spans
    .map(([first, last]) =>
      formatHunk(ops, Math.max(0, first - CONTEXT_LINES), Math.min(ops.length, last + CONTEXT_LINES + 1), from),
    )
    .join("");
};

const formatHunk = (ops: readonly Op[], first: number, end: number, from: number): string => {
  const count = (kinds: string, until: number, since = 0): number =>
    ops.slice(since, until).filter(({ kind }) => kinds.includes(kind)).length;
  const [a, b] = [count(" -", end, first), count(" +", end, first)];
  const [startA, startB] = [from + count(" -", first) + (a > 0 ? 1 : 0), from + count(" +", first) + (b > 0 ? 1 : 0)];
  const lines = ops.slice(first, end).map(({ kind, line }) => `${kind}${line}\n`);
  return `@@ -${startA},${a} +${startB},${b} @@\n${lines.join("")}`;
};
