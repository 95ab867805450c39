// The documentation matches the code: the list of verbs, and the settings of clients, workers and daemons.
import { expect, test } from "bun:test";
import { REFERENCE } from "#src/cli/reference.ts";
import { findNamedBlock, readPage } from "#test/support/documents.ts";

const findPage = (name: string): string => (name === "verbs" ? "docs/cli.md" : "docs/configuration.md");

test.each(Object.keys(REFERENCE))(
  "[CV-14] the documentation's block of %s equals the one printed from the code",
  (name) => {
    expect(findNamedBlock(readPage(findPage(name)), name)).toBe(REFERENCE[name]?.());
  },
);
