// A private repository and private dotfiles, cloned over ssh in a container of a real Docker Engine. The deploy key gives access to the
// repository and the account's key to the dotfiles. Neither key stays in the container.
import { expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { DeployKey } from "#schema/users/deploy-key.ts";
import type { GitSshKey } from "#schema/users/git-ssh-key.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { sshHost } from "#test/api/external-auth/git-hosts.ts";
import { openGitWorld } from "#test/repositories/world.ts";
import { awaitAgent, deleteCompletely, openDockerWorld, runInTerminal } from "#test/support/docker/docker-world.ts";
import { ALLOW_PRIVATE_NETWORKS as env, findGateway, GIT_IMAGE, makeGitImage } from "#test/support/docker/git-image.ts";
import { compiled, needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { tempDirectory } from "#test/support/server.ts";

/** Runs only on request, because other tests cover the repository and the dotfiles without containers. */
const requested = {
  found: Bun.env.SLIPWAY_TEST_PRIVATE_REPOSITORY === "1",
  reason: "runs only with SLIPWAY_TEST_PRIVATE_REPOSITORY=1",
  file: "",
};

testNeeding(
  [requested, needs.docker, needs.git, needs.ssh, needs.sshd, needs.sshKeygen, requireSingleServer("engine"), compiled],
  "[DK-2] [DK-3] [DF-2] [DF-4] a container installs private dotfiles with the account's key, then clones a private repository with its deploy key",
  async () => {
    const engine = new Engine(needs.docker.file, systemClock);
    await engine.connect();
    await makeGitImage(engine);
    const address = await findGateway(engine);
    using git = openGitWorld(() => false);
    using temp = tempDirectory();
    using host = await sshHost(needs.sshd.file, needs.sshKeygen.file, temp.path, "", address);
    // The command reads files of the dotfiles, so it fails unless they were installed before.
    const devcontainer = { image: GIT_IMAGE, onCreateCommand: "cat ~/.marker > seen; git config alias.last > alias" };
    await git.publish("app", { "README.md": "app", ".devcontainer.json": JSON.stringify(devcontainer) });
    await git.publish("dotfiles", { ".marker": "mine\n", ".gitconfig": "[alias]\n\tlast = log -1\n" });
    await using world = await openDockerWorld(env);
    const { admin } = world;
    const url = host.url(git.getBareFolder("app"));
    const key = await admin.post<DeployKey>("/api/v2/users/me/deploy-keys", { url });
    host.authorize(key.public_key, git.getBareFolder("app"));
    const { public_key } = await admin.get<GitSshKey>("/api/v2/users/me/gitsshkey");
    host.authorize(public_key, git.getBareFolder("dotfiles"));
    await admin.put("/api/v2/users/me/dotfiles", { url: host.url(git.getBareFolder("dotfiles")) });

    const { id, template_name } = await admin.post<Workspace>("/api/v2/users/me/workspaces", {
      name: "app",
      repository: { url },
    });
    expect(template_name).toBe("repository");
    const { agent_id, workspace } = await awaitAgent(admin, id);
    const runInWorkspace = async (command: string): Promise<string[]> =>
      (await runInTerminal(admin, agent_id, command)).split(/\s*\n\s*/);
    expect(await runInWorkspace("cat seen alias; git remote get-url origin; readlink ~/.marker")).toEqual([
      "mine",
      "log -1",
      url,
      "/home/dev/.config/slipway/dotfiles/.marker",
    ]);
    // A push needs only the key.
    expect(
      await runInWorkspace(
        "git -c user.name=ada -c user.email=a@example.com commit -q --allow-empty -m more && git push -q 2>&1; git status -sb | head -n 1",
      ),
    ).toEqual(["## main...origin/main"]);
    expect(
      await runInWorkspace("grep -rl 'BEGIN OPENSSH' / --exclude-dir=proc --exclude-dir=sys 2>/dev/null; echo none"),
    ).toEqual(["none"]);
    const { scripts = [] } = workspace.latest_build.resources[0]?.agents?.[0] ?? {};
    expect(scripts.map(({ display_name }) => display_name).slice(0, 2)).toEqual(["Dotfiles", "Repository"]);
    await deleteCompletely(world, id);
  },
);
