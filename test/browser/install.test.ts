// The app as an installed one, in a real browser; its server goes down and returns.
import { expect } from "bun:test";
import { ServerPlace } from "#test/crash/server.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { listOwnComplaints, listStrayRequests, runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-30][WB-4][WB-6] the app can be installed, keeps its own files alone, and has a page for when the server is away",
  async () => {
    await using place = await ServerPlace.make();
    await place.start();
    const given = [place.client.url.href, ADMIN.email, ADMIN.password];
    const told = await runStory("install.mjs", given, {
      stop: async () => {
        place.newest.kill("SIGTERM");
        await place.newest.ended;
      },
      start: () => place.start(),
    });
    expect(told).toMatchObject({ wrong: [], manifest: [], refused: true, back: "/chats" });
    for (const { caches, paths } of [told.kept, told.after] as { caches: number; paths: string[] }[]) {
      expect(caches).toBe(1);
      expect(paths.length).toBeGreaterThan(3);
      expect(paths.filter((path) => path !== "/offline" && !/^\/assets\/[\w.-]+-\w{8,}\.(js|css)$/.test(path))).toEqual(
        [],
      );
    }
    expect(listStrayRequests(told, place.client.url.origin)).toEqual([]);
    // The policy that the story tried to create.
    expect(listOwnComplaints(told).filter((text) => !text.includes("slipway-worker"))).toEqual([]);
  },
  240_000,
);
