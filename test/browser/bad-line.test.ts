// A bad connection and an impatient person, in a real browser.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { importVersion } from "#test/support/templates.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

const YAML = "provisioner: echo\nresources:\n  - name: main\n";

testNeeding(
  [needs.chromium, needs.node],
  "[WB-92] [CB-3] on a bad connection a double click acts once, input stays, a lost creation response is recovered, and lost code loads again",
  async () => {
    await using world = await openWorld();
    const { admin } = world;
    const version = await importVersion(admin, YAML);
    const { id } = await admin.post<{ id: string }>("/api/v2/organizations/default/templates", {
      name: "shared",
      template_version_id: version.id,
    });
    const result = await runStory("bad-line.mjs", [world.server.url.href, admin.token ?? "", id]);
    expect(result).toMatchObject({
      problems: [],
      creations: 1,
      name: "hasty",
      both: "First thought\n\nAnd another",
      afterReload: "First thought\n\nAnd another",
      dragged: 1,
      username: "grace",
      sending: 1,
      saves: 1,
      notLoaded: 0,
      // Loaded, and loaded again.
      documents: 2,
      busy: 4,
    });
    const { count } = await admin.get<{ count: number }>("/api/v2/workspaces");
    expect(count).toBe(1);
  },
  scaleTimeout(180_000),
);
