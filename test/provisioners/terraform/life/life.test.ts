// The short form of the template lives: one of them, without kills. `bun run torture --only "terraform: lives"` has the long one.

import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { runLife } from "./life.ts";
import { openStage } from "./stage.ts";

testNeeding(
  [needs.terraform],
  "[TF-30] a workspace is created, used by terminal and chat, stopped, changed, failed, canceled, updated and deleted; nothing is lost, left behind or leaked",
  async () => {
    await using stage = await openStage("server");
    await runLife(stage, { template: "minimal" });
  },
  scaleTimeout(240_000),
);
