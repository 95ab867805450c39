// Clients that follow logs through a standby node and stop reading, in a short version; `bun run torture --cluster --only "a reader that stops"` runs the long one.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { checkStalledReaders } from "../crash/cluster/server-readers.ts";

const MiB = 1024 * 1024;

testNeeding(
  [needs.postgres],
  "[CL-4] [CR-13] clients of a standby node that stop reading are disconnected with a reason, use no memory on any node, and lose nothing when they resume",
  async () => {
    const options = { rounds: 2, seed: 0, log: () => {} };
    const summary = await checkStalledReaders(options, { bytes: 24 * MiB, pause_ms: 1000 });
    expect(summary).toContain("closed with a reason");
    expect(summary).toContain("streams ended");
    expect(summary).toContain("is complete");
  },
  scaleTimeout(240_000),
);
