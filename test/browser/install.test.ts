// The installed app in a real browser, including while its server is down.
import { expect } from "bun:test";
import { ServerSlot } from "#test/crash/server.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { listPageErrors, listStrayRequests, runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-30][WB-4][WB-6] the app can be installed, caches only its own files, and shows an offline page while the server is unreachable",
  async () => {
    await using place = await ServerSlot.make();
    await place.start();
    const args = [place.client.url.href, ADMIN.email, ADMIN.password];
    const result = await runStory("install.mjs", args, {
      stop: async () => {
        place.currentProcess.kill("SIGTERM");
        await place.currentProcess.ended;
      },
      start: () => place.start(),
    });
    expect(result).toMatchObject({ problems: [], manifest: [], refused: true, returnedTo: "/chats" });
    for (const { caches, paths } of [result.cached, result.after] as { caches: number; paths: string[] }[]) {
      expect(caches).toBe(1);
      expect(paths.length).toBeGreaterThan(3);
      expect(paths.filter((path) => path !== "/offline" && !/^\/assets\/[\w.-]+-\w{8,}\.(js|css)$/.test(path))).toEqual(
        [],
      );
    }
    expect(listStrayRequests(result, place.client.url.origin)).toEqual([]);
    // Ignores the expected complaint about the Trusted Types policy that the story tries to create.
    expect(listPageErrors(result).filter((text) => !text.includes("slipway-worker"))).toEqual([]);
  },
  scaleTimeout(240_000),
);
