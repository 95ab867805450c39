// The page for people says what the tables say.
import { expect } from "bun:test";
import { testInside } from "#test/support/inside.ts";
import { accessDocs, DOCS } from "./access-docs.ts";

testInside("[RO-3] src/api/ACCESS.md is what the tables print; `bun test/api/access-docs.ts` writes it", async () => {
  expect(await Bun.file(DOCS).text()).toBe(accessDocs());
});
