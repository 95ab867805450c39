// The inbox in a real browser, on a real server.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-35] the bell tells what is new without being asked, its panel shows and marks it, and the account chooses what to hear of",
  async () => {
    await using server = await startTestServer();
    const given = [server.url.href, ADMIN.email, ADMIN.password];
    expect(await runStory("notifications.mjs", given)).toMatchObject({ wrong: [], left: 0, checked: false });
  },
  180_000,
);
