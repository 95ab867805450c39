// The short form of the template lives: one template, without kills. `bun run torture --only "terraform: lives"` runs the long form.

import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { runLife } from "./life.ts";
import { openStage } from "./stage.ts";

testNeeding(
  [needs.terraform],
  "[TF-30] a workspace is created, used, stopped, changed, canceled, updated and deleted without losing or leaking anything",
  async () => {
    await using stage = await openStage("server");
    await runLife(stage, { template: "minimal" });
  },
  scaleTimeout(240_000),
);
