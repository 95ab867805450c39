// Groups, and who may use and change a template, in a real browser.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { ECHO, openWorld } from "#test/support/workspaces.ts";
import { listPageErrors, runStory } from "./story.ts";

const GRACE = { email: "grace@example.com", username: "grace", password: "nine grey herons at noon" };

testNeeding(
  [needs.chromium, needs.node],
  "[WB-66][TA-1][GR-1][WB-4][WB-6] an administrator creates a group with an allowance and shares a template with it; members manage that template",
  async () => {
    await using world = await openWorld();
    const { admin } = world;
    const template = await makeTemplate(admin, JSON.stringify(ECHO));
    await admin.post("/api/v2/users", GRACE);
    const organization = "default";
    const args = [world.server.url.href, admin.token ?? "", GRACE.email, GRACE.password, organization, template.id];
    const result = await runStory("access.mjs", args);
    expect(result).toMatchObject({ problems: [], hidden: 404, chosen: "" });
    expect([result.refused, result.unknown].includes("")).toBe(false);
    expect(result.before).toEqual(["Overview", "Versions"]);
    expect(result.after).toEqual(["Overview", "Versions", "Files", "Variables", "Access", "Settings"]);
    expect(await admin.get(`/api/v2/templates/${template.id}/acl`)).toMatchObject({ users: [], group: [] });
    expect(listPageErrors(result).filter((text) => !/status of (400|404)/.test(text))).toEqual([]);
  },
  scaleTimeout(180_000),
);
