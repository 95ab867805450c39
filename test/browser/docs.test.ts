// The documentation in a real browser: all of it is embedded in the program.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-4] [WB-6] [WB-50] the documentation opens in the app with searchable headings; code is highlighted even if the first requests are lost and the browser is never idle",
  async () => {
    await using world = await openWorld();
    const args = [world.server.url.href, world.admin.token ?? ""];
    const result = await runStory("docs.mjs", args);
    expect(result).toMatchObject({ problems: [], dead: [], title: "Quickstart", lost: 2 });
    expect(result.requests.filter((url) => !url.startsWith(world.server.url.href))).toEqual([]);
  },
);
