// Every setting is used by the code.
import { expect, test } from "bun:test";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { readPage } from "#test/support/documents.ts";

test("[CF-1] every server setting is used outside of the table of settings", () => {
  const sources = [...new Bun.Glob("{src,actors,db}/**/*.{ts,tsx}").scanSync({ cwd: `${import.meta.dir}/../..` })]
    .filter((file) => !file.startsWith("src/base/config/") && !file.startsWith("src/schema/"))
    .map(readPage);
  const words = new Set(sources.flatMap((text) => text.match(/\b[a-z]\w+\b/g) ?? []));
  expect(Object.keys(SERVER_SETTINGS).filter((name) => !words.has(name))).toEqual([]);
});
