// The terminal page in a real browser, on a real local workspace; its server is killed and restarted in between.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { openChatServer, STORY_ENV } from "#test/crash/server-story.ts";
import { TalkingModel } from "#test/support/models/talking-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { listPageErrors, listStrayRequests, runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[TE-1][TE-2][TE-3][TE-4][TE-5][TE-6][TE-7][TE-8][WB-4][WB-6] terminals are split and searched, accept files, and return after a reload and after the server is killed",
  async () => {
    await using story = await openChatServer(
      async (_, stack) => `${stack.use(await TalkingModel.start()).server.url}/v1`,
    );
    const { place, world, workspace_id, home } = story;
    const workspace = await world.admin.get<Workspace>(`/api/v2/workspaces/${workspace_id}`);
    const agent = workspace.latest_build.resources[0]?.agents[0]?.id ?? "";
    const args = [place.client.url.href, ADMIN.email, ADMIN.password, agent];
    const result = await runStory("terminal.mjs", args, {
      restart: async () => {
        place.currentProcess.kill("SIGKILL");
        await place.currentProcess.ended;
        await place.start({ env: STORY_ENV });
      },
    });
    expect(result).toMatchObject({
      problems: [],
      colour: "rgb(200, 30, 40)",
      panes: 3,
      shown: 1,
      remainingPanes: 1,
      focusAfterLeaving: "Close terminal 1",
    });
    expect(result.restyled).toBeLessThan(50);
    expect(result.copied).toMatch(/^copy/);
    expect(readFileSync(join(home, "deep/dropped.txt"), "utf8")).toBe("second of two");
    expect(listStrayRequests(result, place.client.url.origin)).toEqual([]);
    expect(listPageErrors(result)).toEqual([]);
  },
  scaleTimeout(240_000),
);
