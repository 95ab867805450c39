// Every printed file is what the code prints now. What fails is printed again by one command.
import { expect, test } from "bun:test";
import { PRINTED } from "#test/printed.ts";
import { readPage } from "#test/support/documents.ts";

test.each(PRINTED)("[RP-49] %s is current: `bun run docs` prints it again", (file, print) => {
  const text = readPage(file);
  expect(text).toBe(print(text));
});
