// Features are written as for one server: names with words of clusters stay in the cluster's code and in the code that hides it.
import { expect, test } from "bun:test";
import { ROOT, readPage } from "#test/support/documents.ts";

/** The code of clusters, and the code that hides it: location, services, store, topics, the context, and the placement of requests. */
const CLUSTER_CODE = [
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

/** The maximum number of other files. Lower it after you have removed such words; never raise it. */
const MAX_FILES = 4;

const WORDS = /\b(?:\w*[sS]hards?(?![a-z])\w*|\w*SHARDS?\w*|nodeOf|elsewhere)\b/;

/** Removes comments and strings, where the words are allowed. */
const keepNames = (source: string): string =>
  source
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/(^|\s)\/\/.*$/gm, "")
    .replace(/"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g, '""');

test("[RP-47] the number of files outside of the cluster's code that mention shards does not grow", () => {
  const files = ["src", "actors", "db"].flatMap((folder) =>
    [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT })].filter(
      (file) => !CLUSTER_CODE.some((path) => file.startsWith(path)),
    ),
  );
  const found = files.filter((file) => WORDS.test(keepNames(readPage(file))));
  expect(found.length).toBeLessThanOrEqual(MAX_FILES);
});

test("[RP-47] the words are found in names, but not in comments and strings", () => {
  const hasWord = (source: string): boolean => WORDS.test(keepNames(source));
  expect(["const toShard = 1;", "shards.nodeOf(1)", "FIRST_SHARD", "{ elsewhere }"].map(hasWord)).not.toContain(false);
  expect(["// the shard", "/** Shards. */", 'log("shard")', "sharded", "const part = 1;"].map(hasWord)).not.toContain(
    true,
  );
});
