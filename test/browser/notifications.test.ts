// The inbox in a real browser, on a real server.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-35] the bell shows new notifications live, its panel lists them and marks them as read, and the account page selects the kinds",
  async () => {
    await using server = await startTestServer();
    const args = [server.url.href, ADMIN.email, ADMIN.password];
    expect(await runStory("notifications.mjs", args)).toMatchObject({ problems: [], unread: 0, checked: false });
  },
  scaleTimeout(180_000),
);
