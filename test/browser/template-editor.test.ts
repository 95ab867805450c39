// Editing a template in a real browser, on a real server that imports and tries it.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { importVersion } from "#test/support/templates.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

const YAML = `provisioner: echo
variables:
  - {name: region, description: Where workspaces are., default: north}
  - {name: password, sensitive: true, default: ""}
parameters:
  - {name: size, default: small, options: [{name: Small, value: small}, {name: Big, value: big}]}
resources:
  - name: main
    agents:
      - name: main
`;

// Evaluated before the first test: it may wait for what .ci/run prepares.
const hasTerraform = needs.terraform.found;

testNeeding(
  [needs.chromium, needs.node],
  "[WB-4] [WB-6] [WB-25] [TG-4] a person edits, tries and promotes a template in the browser, compares versions, changes variables, and uses a starter",
  async () => {
    await using world = await openWorld();
    const { admin } = world;
    const version = await importVersion(admin, { "template.yaml": YAML, "README.md": "# Edited here\n" });
    const { id } = await admin.post<{ id: string }>("/api/v2/organizations/default/templates", {
      name: "edited",
      template_version_id: version.id,
    });
    const args = [world.server.url.href, admin.token ?? "", id, String(hasTerraform)];
    const result = await runStory<{ diff: string }>("template-editor.mjs", args);
    expect(result).toMatchObject({
      problems: [],
      badPath: 1,
      otherTabText: 0,
      draftCount: 0,
      // `local` exists from the start, so it is not offered again.
      localButtons: 0,
      isBlankSelected: true,
      blankButtons: 0,
      variables: [
        ["region", "south"],
        ["password", ""],
      ],
    });
    expect(result.diff).toContain("# Said in the browser.");
  },
  scaleTimeout(180_000),
);
