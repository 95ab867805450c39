// A setting that nothing reads is a promise that nobody keeps.
import { expect, test } from "bun:test";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { page } from "#test/support/documents.ts";

test("[CF-1] every setting of the server is read somewhere outside of the table of settings", () => {
  const sources = [...new Bun.Glob("{src,actors,db}/**/*.{ts,tsx}").scanSync({ cwd: `${import.meta.dir}/../..` })]
    .filter((file) => !file.startsWith("src/base/config/") && !file.startsWith("src/schema/"))
    .map(page);
  const words = new Set(sources.flatMap((text) => text.match(/\b[a-z]\w+\b/g) ?? []));
  expect(Object.keys(SERVER_SETTINGS).filter((name) => !words.has(name))).toEqual([]);
});
