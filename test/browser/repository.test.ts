// The page that opens a repository, in a real browser, with a real git host.
import { expect } from "bun:test";
import type { Workspaces } from "#schema/workspaces/workspace.ts";
import { openGitWorld, removeWorkspace } from "#test/repositories/world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { one } from "#test/support/one-server.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node, needs.git, one("local")],
  "[RW-18] a link is opened from its page, from the palette and by pasting it; the page says what was found before anything is made",
  async () => {
    using git = openGitWorld();
    using closed = openGitWorld(() => false);
    const configuration = (name: string): string =>
      JSON.stringify({ name, initializeCommand: "id", forwardPorts: [3000], postCreateCommand: "true" });
    await git.publish("app", {
      ".devcontainer/a/devcontainer.json": configuration("a"),
      ".devcontainer/b/devcontainer.json": configuration("b"),
    });
    await using world = await openWorld();
    const given = [world.server.url.href, world.admin.token ?? "", git.link("app"), closed.link("secret")];
    const told = await runStory("repository.mjs", given);
    const { workspaces } = await world.admin.get<Workspaces>("/api/v2/workspaces");
    for (const { id } of workspaces) await removeWorkspace(world.admin, id);
    expect(told).toMatchObject({ wrong: [], left_out: 1, name: "app" });
    expect(told.refused).toContain(`${closed.host} has no public repository secret`);
    expect(told.found).toContain(".devcontainer/a/devcontainer.json");
    expect(told.at).toContain("configuration=");
  },
  120_000,
);
