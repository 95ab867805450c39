// Tasks and secrets in a real browser: a real server, a real local workspace for each task, and a model that talks.
import { expect } from "bun:test";
import { openPlace } from "#test/crash/server-story.ts";
import { TalkingModel } from "#test/support/models/talking-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { ownComplaints, runStory, strayRequests } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node, needs.git],
  "[WB-67][TK-2][TK-6][TK-7][WB-4][WB-6] a secret is kept, and a task is given, followed, paused, resumed and deleted with the screen alone",
  async () => {
    await using story = await openPlace(async (_, stack) => `${stack.use(await TalkingModel.start()).server.url}/v1`);
    const { url } = story.place.client;
    const told = await runStory("tasks.mjs", [url.href, ADMIN.email, ADMIN.password]);
    expect(told).toMatchObject({ wrong: [], shown: false });
    expect(told.refused).not.toBe("");
    expect(await story.world.admin.get("/api/v2/users/me/secrets")).toMatchObject([{ name: "registry" }]);
    expect(strayRequests(told, url.origin)).toEqual([]);
    expect(ownComplaints(told)).toEqual([]);
  },
  400_000,
);
