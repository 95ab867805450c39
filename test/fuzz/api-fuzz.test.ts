// The short form of the API fuzzer, with a fixed seed.
import { expect, test } from "bun:test";
import { startTestServer } from "#test/support/server.ts";
import { checks, fuzzOperations } from "./api-fuzz.ts";
import { checks as sequences } from "./api-sequences.ts";
import { fetchDocument, listOperations } from "./operations.ts";

test.each(checks.map((check) => [check.name, check] as const))(
  "[FZ-1] %s gets 2 requests each: no 5xx, no undocumented status, no undocumented shape of an error, no timeout",
  async (_name, check) => {
    const summary = await check.run({ rounds: 2, seed: 20_261, log: () => {} });
    // A fuzzer whose requests all fail validation would find nothing.
    expect(Number(/(\d+) operations succeeded/.exec(summary)?.[1])).toBeGreaterThan(30);
  },
);

test("[FZ-4] two requests of a member for each operation return no undocumented type or shape, and no forbidden body is accepted", async () => {
  const summary = await fuzzOperations({ rounds: 2, seed: 20_262, who: "member", log: () => {} });
  expect(summary).toContain("no forbidden body accepted");
});

test.each(sequences.map((check) => [check.name, check] as const))(
  "[FZ-3] %s are created, changed, deleted and requested again, by others and below other parents, as the model predicts",
  async (_name, check) => {
    expect(await check.run({ rounds: 8, seed: 20_261, log: () => {} })).toContain("as the model predicts");
  },
);

test("[FZ-2] the fuzzer covers every route: the document contains them with callers and bodies", async () => {
  await using server = await startTestServer();
  const operations = listOperations(await fetchDocument(server.url));
  expect(operations.length).toBeGreaterThan(20);
  expect(operations.some(({ callers }) => callers.includes("agent"))).toBe(true);
  expect(operations.filter(({ body }) => body !== undefined).length).toBeGreaterThan(5);
});
