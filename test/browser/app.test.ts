// The app in a real browser, on a real server with real workspaces. One browser and one server for the whole story.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-4] [WB-6] [PG-4] [PG-5] a person signs in, searches, stops two workspaces at once, pins one and finds another, and each page is accessible and breaks no policy",
  async () => {
    await using world = await openWorld();
    const { template_id } = await seedTemplate(world.server);
    for (const name of ["alpha", "beta"]) {
      await awaitBuild(world.admin, (await createWorkspace(world.admin, template_id, name)).id);
    }
    const given = [world.server.url.href, ADMIN.email, ADMIN.password];
    const { requests, complaints, ...told } = await runStory("app.mjs", given);
    expect(told).toMatchObject({
      wrong: [],
      filtered: ["alpha"],
      address: "owner:me alph",
    });
    expect(told.names).toEqual(expect.arrayContaining(["alpha", "beta"]));
    expect(told.command).toMatch(/^slipway workspaces stop admin\/(alpha|beta)$/);
    expect(told.curl).toContain("/api/v2/workspaces/");
    expect(requests.filter((one) => !one.startsWith(world.server.url.origin) && !one.startsWith("data:"))).toEqual([]);
    expect(complaints.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
  },
  180_000,
);
