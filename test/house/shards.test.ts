// A batch that is written outside of its actor names its shard, so that the commit guard rejects a node that no longer owns it.
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { ROOT, readPage } from "#test/support/documents.ts";

/**
 * Number of calls per file that name none, with the reason. A request's writes without a shard belong to the request's own
 * (test/cluster/requests/request-shards.test.ts).
 */
const WITHOUT: Readonly<Record<string, readonly [number, string]>> = {
  "actors/chat/background/search-upkeep.ts": [1, "each node's own index"],
  "actors/chat/recovery.ts": [1, "runs only on a single server, when it starts"],
  "actors/chat/spending/ledger.ts": [1, "money that was spent is recorded, even after the shard has moved"],
  "actors/chat/spending/recording-retention.ts": [1, "rows beyond the limit are removed, whichever node wrote them"],
  "actors/hooks/ledger.ts": [1, "a hook's response is recorded, even after the shard has moved"],
  "actors/tasks/keeper.ts": [1, "only clears the timer of a deleted chat"],
  "actors/usage/collector.ts": [
    3,
    "sums of several shards, added in any order; a rejected batch is written with the next one",
  ],
  "src/domain/connections/retention.ts": [1, "a setting that the first node reads"],
  "src/domain/connections/log.ts": [2, "rows of several shards, when a node starts and stops"],
};

/** Counts the arguments between the parentheses that open at `at`. */
const argumentsAt = (text: string, at: number): number => {
  let [depth, count] = [0, 1];
  for (let i = at; i < text.length; i++) {
    const character = text[i] ?? "";
    if ("([{".includes(character)) depth++;
    if (")]}".includes(character) && --depth === 0) return count;
    if (character === "," && depth === 1 && !/^,\s*\)/.test(text.slice(i, i + 20))) count++;
  }
  return count;
};

const countWithoutShard = (path: string): number => {
  const text = readPage(path);
  return [...text.matchAll(/\bcommit\(/g)].filter(
    ({ index, 0: call }) =>
      /[sS]tore\s*\.$/.test(text.slice(0, index)) && argumentsAt(text, index + call.length - 1) < 3,
  ).length;
};

test("[CP-68] every write outside of actors names its shard", () => {
  const places = ["actors/**/*.ts", "src/domain/connections/*.ts"];
  const written = places.flatMap((pattern) => [...new Glob(pattern).scanSync(ROOT)]);
  const found = Object.fromEntries(
    written.map((path) => [path, countWithoutShard(path)]).filter(([, count]) => count !== 0),
  );
  const right = Object.fromEntries(Object.entries(WITHOUT).map(([path, [count]]) => [path, count]));
  expect(found).toEqual(right);
});

test("[CP-68] a call's arguments are counted correctly", () => {
  expect(argumentsAt("(a, b)", 0)).toBe(2);
  expect(argumentsAt("([a, b], { c, d }, f(1, 2))", 0)).toBe(3);
  expect(argumentsAt("(\n  [a],\n  undefined,\n  part,\n)", 0)).toBe(3);
});
