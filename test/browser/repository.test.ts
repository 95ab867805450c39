// The page that opens a repository, in a real browser, with a real git host.
import { expect } from "bun:test";
import { insertRepositoryPrebuild } from "#db/templates/repository-prebuilds.ts";
import { findDefaultOrganization } from "#db/users/organizations.ts";
import { findUserByName } from "#db/users/users.ts";
import type { RecentRepository } from "#schema/templates/repository.ts";
import type { Workspaces } from "#schema/workspaces/workspace.ts";
import { openGitWorld, removeWorkspace } from "#test/repositories/world.ts";
import { TEST_AGENT } from "#test/support/acp/agent-world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { openWorld, type World } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

/** Stores a successful and a failed prebuild, as the keeper would. */
const seedPrebuilds = async ({ server: { context } }: World): Promise<void> => {
  if (!context) throw new Error("the server is in this process");
  const { store, clock } = context;
  const [organization, owner] = await Promise.all([
    store.get(findDefaultOrganization()),
    store.get(findUserByName({ username: ADMIN.username })),
  ]);
  const insertPrebuild = (name: string, fields: object) =>
    insertRepositoryPrebuild({
      id: crypto.randomUUID(),
      organization_id: organization?.id ?? "",
      owner_id: owner?.id ?? "",
      url: `https://github.com/acme/${name}`,
      name,
      keep: 3,
      status: "ready",
      built_at: clock.now() - 60_000,
      created_at: clock.now(),
      ...fields,
    });
  const failed = {
    status: "failed",
    error: "The Dockerfile cannot be built: exit code 3",
    log: "Step 1/2\nexit code 3",
  };
  const built = { commit: "8419cd4e".padEnd(40, "0"), interval_hours: 24, next_at: clock.now() + 86_400_000 };
  await store.commit([insertPrebuild("payments-api-with-a-rather-long-name", failed), insertPrebuild("shop", built)]);
};

testNeeding(
  [needs.chromium, needs.node, needs.git, requireSingleServer("local")],
  "[RW-18][RW-19][DK-1][WB-96][CB-16] a repository opens from its page, the palette or a pasted link, after its configuration is shown; chats and tasks use it, and a private one gets a deploy key",
  async () => {
    using git = openGitWorld();
    using privateGit = openGitWorld(() => false);
    const customizations = { vscode: { extensions: ["acme.theme"] } };
    const makeConfiguration = (name: string): string =>
      JSON.stringify({
        name,
        initializeCommand: "id",
        forwardPorts: [3000],
        postCreateCommand: "true",
        customizations,
      });
    await git.publish("app", {
      ".devcontainer/a/devcontainer.json": makeConfiguration("a"),
      ".devcontainer/b/devcontainer.json": makeConfiguration("b"),
    });
    const lib = await git.publish("lib", { "README.md": "lib" });
    lib.git("push", "-q", "hosted", "main:next");
    await using world = await openWorld();
    await seedPrebuilds(world);
    // No ssh server responds there.
    const links = [git.link("app"), privateGit.link("secret"), git.link("lib")];
    const args = [world.server.url.href, world.admin.token ?? "", ...links];
    // The repository template exists once a workspace was created from it.
    const setDefaultAgent = async (): Promise<void> => {
      const { workspaces } = await world.admin.get<Workspaces>("/api/v2/workspaces");
      await world.admin.put<unknown>("/api/v2/ai/agents/test", TEST_AGENT);
      await world.admin.patch<unknown>(`/api/v2/templates/${workspaces[0]?.template_id}`, {
        default_coding_agent: "test",
      });
    };
    const result = await runStory("repository.mjs", args, { agent: setDefaultAgent });
    const recent = await world.admin.get<RecentRepository[]>("/api/v2/repositories");
    const { workspaces } = await world.admin.get<Workspaces>("/api/v2/workspaces");
    for (const { id } of workspaces) await removeWorkspace(world.admin, id);
    expect(result).toMatchObject({ problems: [], left_out: 1, name: "app", reused: 1, branch: "next", opened: "next" });
    expect(result.noBranch).toContain("has no branch or tag none");
    expect(result.recent).toEqual(["lib · next", "app"].map((name) => expect.stringContaining(name)));
    expect(workspaces.map(({ name }) => name).sort()).toEqual(["app", "lib", "morning"]);
    expect(recent.map(({ repository, name }) => [name, repository])).toEqual([
      ["lib", { url: git.link("lib"), branch: "next" }],
      ["app", { url: git.link("app") }],
    ]);
    const { refused, deployKey, found, at: search } = result;
    expect(refused).toContain(`${privateGit.host} has no public repository secret`);
    expect(deployKey).toStartWith("ssh-ed25519 ");
    expect(found).toContain(".devcontainer/a/devcontainer.json");
    expect(found).toContain("VS Code extensionsacme.theme");
    expect(search).toContain("configuration=");
  },
  scaleTimeout(180_000),
);
