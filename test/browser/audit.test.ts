// The audit log in a real browser.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-4] [WB-6] [WB-20] the audit log shows what was done, keeps filter and entry in the address, and tells field by field",
  async () => {
    await using world = await openWorld();
    await world.admin.put("/api/v2/users/me/profile", { username: ADMIN.username, name: "Ada Lovelace" });
    const given = [world.server.url.href, world.admin.token ?? ""];
    const told = await runStory<{ fields: string[] }>("audit.mjs", given);
    expect(told).toMatchObject({ wrong: [], address: "resource_type:user" });
    expect(told.fields.join("\n")).toContain("Ada Lovelace");
    expect(told.after).toContain("changed user");
  },
  120_000,
);
