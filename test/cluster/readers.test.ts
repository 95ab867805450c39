// Readers behind a spare that stop reading, in the short form; `bun run torture --cluster --only "a reader that stops"` has the long one.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { checkStalledReaders } from "../crash/cluster/server-readers.ts";

const MiB = 1024 * 1024;

testNeeding(
  [needs.postgres],
  "[CL-4] [CR-13] behind a spare readers that stop take no memory of either node, learn why they were closed, and return without a gap",
  async () => {
    const options = { rounds: 2, seed: 0, log: () => {} };
    const said = await checkStalledReaders(options, { bytes: 24 * MiB, still_ms: 1000 });
    expect(said).toContain("closed with a reason");
    expect(said).toContain("streams ended");
    expect(said).toContain("came whole");
  },
  240_000,
);
