// A template that several people work on, in a real browser.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { importVersion } from "#test/support/templates.ts";
import { ECHO, openWorld } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-91] [WB-4] [WB-6] versions that others promote, archive and delete appear on an idle template page, and typed input stays",
  async () => {
    await using world = await openWorld();
    const { admin } = world;
    const files = { "template.yaml": `${JSON.stringify(ECHO)}\n` };
    const firstVersion = await importVersion(admin, files, { name: "one" });
    const { id } = await admin.post<{ id: string }>("/api/v2/organizations/default/templates", {
      name: "shared",
      template_version_id: firstVersion.id,
    });
    const secondVersion = await importVersion(admin, files, { name: "two", template_id: id });
    const args = [world.server.url.href, admin.token ?? "", id, firstVersion.id, secondVersion.id];
    const result = await runStory("template-conflict.mjs", args);
    expect(result).toMatchObject({ problems: [], draftCount: 1, typed: "Mine" });
  },
  scaleTimeout(180_000),
);
