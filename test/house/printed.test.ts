// Every generated file is what the code prints now. If this test fails, `bun run docs` writes the files again.
import { expect, test } from "bun:test";
import { PRINTED } from "#test/printed.ts";
import { readPage } from "#test/support/documents.ts";

test.each(PRINTED)("[RP-49] %s is current: `bun run docs` writes it", (file, print) => {
  const text = readPage(file);
  expect(text).toBe(print(text));
});
