// The documentation in a real browser: all of it is in the program.
import { expect } from "bun:test";
import { fileURLToPath } from "node:url";
import { needs, testNeeding } from "#test/support/needs.ts";
import { openWorld } from "#test/support/workspaces.ts";

const SCRIPT = fileURLToPath(new URL("docs.mjs", import.meta.url));

testNeeding(
  [needs.chromium, needs.node],
  "[WB-4] [WB-6] [WB-50] the documentation is read in the app, its headings are found, and its links stay there",
  async () => {
    await using world = await openWorld();
    const given = [world.server.url.href, world.admin.token ?? "", process.env.SLIPWAY_PICTURES ?? ""];
    const child = Bun.spawn([needs.node.file, SCRIPT, needs.chromium.file, ...given], {
      stdout: "pipe",
      stderr: "pipe",
    });
    const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`the browser's story failed:\n${errors}`);
    const told = JSON.parse(output) as { requests: string[] };
    expect(told).toMatchObject({ wrong: [], dead: [], title: "Quickstart" });
    expect(told.requests.filter((url) => !url.startsWith(world.server.url.href))).toEqual([]);
  },
  120_000,
);
