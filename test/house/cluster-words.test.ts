// Features are written as for one server: names with words of clusters stay in the cluster's code and in the seams that hide it.
import { expect, test } from "bun:test";
import { ROOT, readPage } from "#test/support/documents.ts";

/** The code for clusters, and what hides it: location, services, store, topics, the root, and the placement of requests. */
const SEAMS = [
  "actors/runtime/",
  "db/engine/",
  "db/find-shard.ts",
  "db/own-rows.ts",
  "db/pg/",
  "db/shard-index.ts",
  "src/api/http/placement/",
  "src/base/network/",
  "src/base/shards.ts",
  "src/cluster/",
  "src/context/",
  "src/domain/location.ts",
  "src/domain/tailnet/remote-",
  "src/server.ts",
];

/** Files outside of them. Lower it after you have freed some of these words; never raise it. */
const MAX_FILES = 4;

const WORDS = /\b(?:\w*[sS]hards?(?![a-z])\w*|\w*SHARDS?\w*|nodeOf|elsewhere)\b/;

/** Removes comments and texts, which may explain what names must not say. */
const keepNames = (source: string): string =>
  source
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/(^|\s)\/\/.*$/gm, "")
    .replace(/"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g, '""');

test("[RP-47] no more files use the words of shards than before, outside of the cluster's code and its seams", () => {
  const files = ["src", "actors", "db"].flatMap((folder) =>
    [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT })].filter(
      (file) => !SEAMS.some((seam) => file.startsWith(seam)),
    ),
  );
  const found = files.filter((file) => WORDS.test(keepNames(readPage(file))));
  expect(found.length).toBeLessThanOrEqual(MAX_FILES);
});

test("[RP-47] names are found, but not comments and texts", () => {
  const has = (source: string): boolean => WORDS.test(keepNames(source));
  expect(["const toShard = 1;", "shards.nodeOf(1)", "FIRST_SHARD", "{ elsewhere }"].map(has)).not.toContain(false);
  expect(["// the shard", "/** Shards. */", 'log("shard")', "sharded", "const part = 1;"].map(has)).not.toContain(true);
});
