// The short form of the kills in each phase of Terraform builds; `bun run torture --only terraform` has the long one.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { killServer, killWorker } from "./server-terraform.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);
const ONE_ROUND = { rounds: 1, seed: SEED, log: () => {} };

testNeeding(
  [needs.terraform],
  `[TF-10] [TF-11] [TF-37] killed in five phases of builds, the server continues from the existing resources (seed ${SEED})`,
  async () => {
    expect(await killServer(ONE_ROUND)).toContain("all continued");
  },
  scaleTimeout(300_000),
);

testNeeding(
  [needs.terraform],
  `[TF-20] [TF-11] [TF-37] killed in four phases of builds, a worker continues from the resources that it had created (seed ${SEED})`,
  async () => {
    expect(await killWorker(ONE_ROUND)).toContain("all continued");
  },
  scaleTimeout(300_000),
);
