// From a link to an editor in the clone, in a real browser.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Workspaces } from "#schema/workspaces/workspace.ts";
import { openGitWorld, removeWorkspace } from "#test/repositories/world.ts";
import { serveEditors } from "#test/support/editor-mirror.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { serveReleases } from "#test/support/release-server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

const MANIFEST = readFileSync(join(import.meta.dir, "../../src/starter/code-server/template.yaml"), "utf8");
const RELEASES = /https:\/\/github\.com\/coder\/code-server\/releases\/download/;

type OpenResult = { readonly presses: number; readonly seconds: number; readonly folder?: string };

/** Serves genuine editors if they were prepared, otherwise a fake that only responds. */
const serveReleasesMirror = async (): Promise<Disposable & { readonly url: string; readonly isGenuine: boolean }> => {
  const isGenuine = needs.editors.found;
  const mirror = isGenuine
    ? serveEditors(needs.editors.file)
    : await serveReleases({ codeServer: "4.139.1", go: "1.99.1", jupyterlab: "4.6.6" });
  return { url: mirror.url, isGenuine, [Symbol.dispose]: () => mirror[Symbol.dispose]() };
};

testNeeding(
  [needs.chromium, needs.node, needs.git, requireSingleServer("local")],
  "[WB-95] a pasted link opens an editor in the clone, within 4 clicks and a minute",
  async () => {
    using releases = await serveReleasesMirror();
    using git = openGitWorld();
    await git.publish("shop", { "README.md": "shop\n", "work/sum.sh": "exit 0\n" });
    await using world = await openWorld();
    const { admin } = world;
    const manifest = MANIFEST.replace(RELEASES, `${releases.url}/code-server`);
    await makeTemplate(admin, manifest, { name: "code-server", display_name: "VS Code" });
    const args = [
      world.server.url.href,
      admin.token ?? "",
      `${git.link("shop")}.git`,
      releases.isGenuine ? "yes" : "no",
    ];
    const result = await runStory<OpenResult>("open-repository.mjs", args);
    const { workspaces } = await admin.get<Workspaces>("/api/v2/workspaces");
    for (const { id } of workspaces) await removeWorkspace(admin, id);
    expect(result.problems).toEqual([]);
    expect(result.presses).toBeLessThanOrEqual(4);
    expect(result.seconds).toBeLessThan(60);
    if (releases.isGenuine) expect(result.folder).toContain("shop");
    process.stderr.write(`an editor in a clone: ${result.presses} presses, ${result.seconds} s\n`);
  },
);
