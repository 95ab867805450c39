// A batch that is written outside of its actor names the owner of its rows, so that the commit guard rejects a node that has lost the
// shard.
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { ROOT, readPage } from "#test/support/documents.ts";

/**
 * Number of calls per file that do not name the owner, with the reason. Such writes of a request belong to the shard of the request
 * (test/cluster/requests/request-shards.test.ts).
 */
const WITHOUT_OWNER: Readonly<Record<string, readonly [number, string]>> = {
  "actors/chat/background/search-upkeep.ts": [1, "each node's own index"],
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

/** Returns the text between the parentheses that open at `start`. */
const readArguments = (text: string, start: number): string => {
  let depth = 0;
  for (let i = start; i < text.length; i++) {
    const character = text[i] ?? "";
    if ("([{".includes(character)) depth++;
    if (")]}".includes(character) && --depth === 0) return text.slice(start + 1, i);
  }
  return "";
};

const namesOwner = (args: string): boolean => /,\s*\{[^{}]*\bof\b[^{}]*\},?\s*$/.test(args);

const countWithoutOwner = (path: string): number => {
  const text = readPage(path);
  return [...text.matchAll(/\bcommit\(/g)].filter(
    ({ index, 0: call }) =>
      /[sS]tore\s*\.$/.test(text.slice(0, index)) && !namesOwner(readArguments(text, index + call.length - 1)),
  ).length;
};

test("[CP-68] every write outside of actors names the owner of its rows", () => {
  const globs = ["actors/**/*.ts", "src/domain/connections/*.ts"];
  const written = globs.flatMap((pattern) => [...new Glob(pattern).scanSync(ROOT)]);
  const found = Object.fromEntries(
    written.map((path) => [path, countWithoutOwner(path)]).filter(([, count]) => count !== 0),
  );
  const expected = Object.fromEntries(Object.entries(WITHOUT_OWNER).map(([path, [count]]) => [path, count]));
  expect(found).toEqual(expected);
});

test("[CP-68] the owner is found in the options of a call, but not in its statements", () => {
  const hasOwner = (call: string): boolean => namesOwner(readArguments(call, 0));
  expect(["(a, { of: b })", "([a], { about, of: f(b) })", "(\n  [a],\n  { of: 1 },\n)"].map(hasOwner)).not.toContain(
    false,
  );
  expect(["(a)", "([f({ of: 1 })])", "([a], { about })"].map(hasOwner)).not.toContain(true);
});
