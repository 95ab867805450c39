// The template pages in a real browser, on a real server that imports uploads.
import { expect } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ECHO, openWorld } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-87] [WB-81] [WB-4] [WB-6] [WB-23] a person imports a template from a folder, promotes a version, and deprecates and deletes it in the browser",
  async () => {
    await using world = await openWorld();
    const folder = mkdtempSync(join(tmpdir(), "slipway-template-"));
    try {
      const template = join(folder, "sandbox");
      mkdirSync(join(template, "docs"), { recursive: true });
      await Bun.write(join(template, "template.yaml"), JSON.stringify(ECHO));
      await Bun.write(join(template, "README.md"), "# Sandbox for trying\n\nWith *nothing* in it.\n");
      await Bun.write(join(template, "docs", "more.md"), "More.\n");
      const broken = join(folder, "broken.tar");
      await Bun.write(broken, "This is not an archive.");
      const args = [world.server.url.href, world.admin.token ?? "", broken, template];
      const result = await runStory("templates.mjs", args);
      expect(result).toMatchObject({
        problems: [],
        saved: {
          name: "sandbox",
          display_name: "Sandbox",
          description: "By **another**, see [the docs](https://docs.example.com)",
          default_ttl_ms: 28_800_000,
          deprecated: true,
        },
      });
      expect(result.link).toBe("https://docs.example.com");
      expect(result.path).toMatch(/^\/templates\/[0-9a-f-]{36}$/);
      expect(result.refused).not.toBe("");
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
