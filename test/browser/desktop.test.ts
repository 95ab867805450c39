// The desktop of a chat's workspace in a real browser: a real VNC server, a real window on it.
import { expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openChatServer } from "#test/crash/server-story.ts";
import { TalkingModel } from "#test/support/models/talking-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { listPageErrors, listStrayRequests, runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node, needs.xvnc, needs.xterm],
  "[CB-11][WB-4][WB-6] a window that a chat opens is shown on the desktop next to it, and receives typed text",
  async () => {
    await using story = await openChatServer(
      async (_, stack) => `${stack.use(await TalkingModel.start()).server.url}/v1`,
    );
    const { place, home } = story;
    const args = [place.client.url.href, ADMIN.email, ADMIN.password];
    const file = join(home, "typed");
    const result = await runStory("desktop.mjs", args, {
      typed: () => until(() => existsSync(file) && readFileSync(file, "utf8") !== ""),
    });
    expect(result).toMatchObject({ problems: [], before: 0 });
    expect(readFileSync(file, "utf8")).toBe("hello from afar\n");
    expect(listStrayRequests(result, place.client.url.origin)).toEqual([]);
    // The story itself reads the canvas repeatedly.
    expect(listPageErrors(result).filter((text) => !text.startsWith("Canvas2D"))).toEqual([]);
  },
  scaleTimeout(180_000),
);
