// The appearance of a deployment, and people's own settings, in a real browser.
import { expect } from "bun:test";
import { Client } from "#src/client.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { listPageErrors, listStrayRequests, runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-60] the deployment's name, logo and announcements show from the first paint; theme and font belong to the account",
  async () => {
    await using server = await startTestServer();
    const args = [server.url.href, ADMIN.email, ADMIN.password];
    const result = await runStory("appearance.mjs", args);
    expect(result).toMatchObject({
      problems: [],
      refused: expect.stringContaining("Must be empty, an http or https URL"),
      announced: 1,
      // As served, or as set by the page slightly later.
      title: expect.stringMatching(/^(Sign in to Harbour & <Sons> · )?Harbour & <Sons>$/),
      logo: true,
      theme: "dark",
      manifest: "Harbour & <Sons>",
    });
    expect(listStrayRequests(result, server.url.origin)).toEqual([]);
    expect(listPageErrors(result)).toEqual([]);
    // If the logo is on another host, the pages' policy also allows images from that host.
    const policy = async () => (await fetch(new URL("/login", server.url))).headers.get("content-security-policy");
    expect(await policy()).toContain("img-src 'self' data: blob:;");
    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    await admin.put("/api/v2/appearance", { logo_url: "https://pictures.example/logo.png" });
    expect(await policy()).toContain("img-src 'self' data: blob: https://pictures.example;");
  },
  scaleTimeout(360_000),
);
