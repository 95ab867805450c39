// The page for people says what the tables say.
import { expect } from "bun:test";
import { testInside } from "#test/support/inside.ts";
import { startTestServer } from "#test/support/server.ts";
import { accessDocs, DOCS } from "./access-docs.ts";
import { declaredScopes } from "./declared-scopes.ts";

testInside(
  "[RO-3] src/api/ACCESS.md is what the tables print; `bun test/api/access-docs.ts` writes it",
  async () => {
    await using server = await startTestServer();
    expect(await Bun.file(DOCS).text()).toBe(accessDocs(declaredScopes(server)));
  },
  60_000,
);
