// Objects that someone else deletes while a dialog for them is open, in a real browser.
import { expect } from "bun:test";
import { openModelWorld } from "#test/support/models/model-world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-80] an administration dialog for an object that someone else has deleted closes with a message, and its list is current",
  async () => {
    await using world = await openModelWorld();
    const { server, owner, upstream } = world;
    const result = await runStory("gone.mjs", [server.url.href, owner.token ?? "", upstream.url]);
    expect(result).toMatchObject({ problems: [], typed: "not-a-user" });
    expect(result.closedDialogs).toHaveLength(12);
  },
  scaleTimeout(240_000),
);
