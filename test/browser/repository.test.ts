// The page that opens a repository, in a real browser, with a real git host.
import { expect } from "bun:test";
import type { RecentRepository } from "#schema/templates/repository.ts";
import type { Workspaces } from "#schema/workspaces/workspace.ts";
import { openGitWorld, removeWorkspace } from "#test/repositories/world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { one } from "#test/support/one-server.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node, needs.git, one("local")],
  "[RW-18][RW-19][DK-1] a link is opened from its page, from the palette and by pasting it; the page says what was found before anything is made; a chat and a task work in a repository, and the last ones are offered; a private one gets a deploy key",
  async () => {
    using git = openGitWorld();
    using closed = openGitWorld(() => false);
    const configuration = (name: string): string =>
      JSON.stringify({ name, initializeCommand: "id", forwardPorts: [3000], postCreateCommand: "true" });
    await git.publish("app", {
      ".devcontainer/a/devcontainer.json": configuration("a"),
      ".devcontainer/b/devcontainer.json": configuration("b"),
    });
    const lib = await git.publish("lib", { "README.md": "lib" });
    lib.git("push", "-q", "hosted", "main:next");
    await using world = await openWorld();
    // Nothing answers ssh there.
    const links = [git.link("app"), closed.link("secret"), git.link("lib")];
    const given = [world.server.url.href, world.admin.token ?? "", ...links];
    const told = await runStory("repository.mjs", given);
    const recent = await world.admin.get<RecentRepository[]>("/api/v2/repositories");
    const { workspaces } = await world.admin.get<Workspaces>("/api/v2/workspaces");
    for (const { id } of workspaces) await removeWorkspace(world.admin, id);
    expect(told).toMatchObject({ wrong: [], left_out: 1, name: "app", reused: 1, branch: "next", opened: "next" });
    expect(told.noBranch).toContain("has no branch or tag none");
    expect(told.recent).toEqual(["lib · next", "app"].map((name) => expect.stringContaining(name)));
    expect(workspaces.map(({ name }) => name).sort()).toEqual(["app", "lib", "morning"]);
    expect(recent.map(({ repository, name }) => [name, repository])).toEqual([
      ["lib", { url: git.link("lib"), branch: "next" }],
      ["app", { url: git.link("app") }],
    ]);
    expect(told.refused).toContain(`${closed.host} has no public repository secret`);
    expect(told.deployKey).toStartWith("ssh-ed25519 ");
    expect(told.found).toContain(".devcontainer/a/devcontainer.json");
    expect(told.at).toContain("configuration=");
  },
  120_000,
);
