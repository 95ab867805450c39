// README says what the code says: the list of verbs, and the settings of clients, workers and daemons.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { REFERENCE } from "#src/cli/reference.ts";

const README = readFileSync(fileURLToPath(new URL("../../README.md", import.meta.url)), "utf8");

test.each(Object.keys(REFERENCE))("[CV-14] README's block of %s is the one printed from the code", (name) => {
  const [, block] = README.split(new RegExp(`<!-- /?${name} -->\n`));
  expect(block?.trim()).toBe(REFERENCE[name]?.() ?? "");
});
