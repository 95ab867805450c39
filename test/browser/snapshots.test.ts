// Snapshots of a workspace in a real browser.
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createWorkspace, ECHO, openWorld } from "#test/support/workspaces.ts";
import { listPageErrors, runStory } from "./story.ts";

const LOCAL = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";

testNeeding(
  [needs.chromium, needs.node, requireSingleServer("local")],
  "[SN-12][SN-18][SN-7][FO-7] a person creates, restores and deletes a snapshot, and forks a workspace and restores it from the trash; unsupported pages say why",
  async () => {
    await using world = await openWorld();
    const { admin, server } = world;
    const { id } = await createWorkspace(admin, (await makeTemplate(admin, LOCAL)).id);
    await awaitBuild(admin, id);
    const keptFile = join(server.directory, "workspaces", id, "home", "kept");
    writeFileSync(keptFile, "mine");
    const template = await makeTemplate(admin, JSON.stringify(ECHO));
    const echoWorkspace = await createWorkspace(admin, template.id, "other");
    await awaitBuild(admin, echoWorkspace.id);
    const result = await runStory("snapshots.mjs", [
      server.url.href,
      admin.token ?? "",
      id,
      echoWorkspace.id,
      template.id,
    ]);
    expect(result).toMatchObject({ problems: [], asks: expect.stringContaining("The workspace restarts.") });
    expect(result.hint).toContain("not available for this template");
    expect(readFileSync(keptFile, "utf8")).toBe("mine");
    expect(listPageErrors(result)).toEqual([]);
  },
);
