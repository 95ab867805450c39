// The short form of the template lives: one of them, without kills. `bun run torture --only "terraform: lives"` has the long one.
import { needs, testNeeding } from "#test/support/needs.ts";
import { runLife } from "./life.ts";
import { openStage } from "./stage.ts";

testNeeding(
  [needs.terraform],
  "[TF-30] a workspace is made, worked in by terminal and chat, stopped, changed, failed, cancelled, updated and deleted; nothing is lost, left or told",
  async () => {
    await using stage = await openStage("server");
    await runLife(stage, { template: "minimal" });
  },
  240_000,
);
