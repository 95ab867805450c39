// Starts a repository as a container of a real Docker Engine: its image is built once, its features are installed, and its clone is kept.
import { expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { FeatureHost } from "#test/repositories/feature-host.ts";
import { openGitWorld } from "#test/repositories/world.ts";
import { awaitAgent, deleteCompletely, openDockerWorld, runInTerminal } from "#test/support/docker/docker-world.ts";
import { ALLOW_PRIVATE_NETWORKS as env, findGateway, GIT_IMAGE, makeGitImage } from "#test/support/docker/git-image.ts";
import { compiled, needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { awaitBuild, createBuild } from "#test/support/workspaces.ts";

testNeeding(
  [needs.docker, needs.git, requireSingleServer("engine"), compiled],
  "[RW-13] [RW-14] [RW-15] [RW-16] builds a repository's image once, with its features and user, and removes it when images are too large",
  async () => {
    const engine = new Engine(needs.docker.file, systemClock);
    await engine.connect();
    await makeGitImage(engine);
    const address = await findGateway(engine);
    using git = openGitWorld(undefined, address);
    using features = new FeatureHost();
    const base = await features.publish(
      "acme/base",
      { id: "base", version: "1.0.0", name: "Base" },
      "#!/bin/sh\nset -e\necho base >>/features\n",
    );
    const tool = await features.publish(
      "acme/tool",
      {
        id: "tool",
        options: { color: { type: "string", default: "red" }, size: { default: 1 } },
        dependsOn: { [base]: {} },
        containerEnv: { TOOL: "yes" },
        privileged: true,
      },
      '#!/bin/sh\nset -e\necho "tool $COLOR $SIZE $_REMOTE_USER $_REMOTE_USER_HOME" >>/features\n',
    );
    const devcontainer = {
      build: { dockerfile: "Dockerfile", context: "..", args: { WORD: "it's" } },
      features: { [tool]: { color: "blue" }, "./own": {} },
      remoteEnv: { BOTH: `\${containerEnv:TOOL}-\${containerWorkspaceFolder}` },
      mounts: ["source=cache,target=/cache,type=volume"],
      postCreateCommand: "echo created >>/cache/log && touch created",
      waitFor: "postCreateCommand",
    };
    const unique = crypto.randomUUID();
    const files = {
      ".devcontainer/devcontainer.json": JSON.stringify(devcontainer),
      ".devcontainer/Dockerfile": `FROM ${GIT_IMAGE}\nARG WORD\nUSER root\nRUN echo "$WORD" >/word\nCOPY docs /docs\nUSER dev\n`,
      ".devcontainer/own/devcontainer-feature.json": JSON.stringify({
        id: "own",
        installsAfter: ["nothing.example.com/x"],
      }),
      ".devcontainer/own/install.sh": "#!/bin/sh\necho own >>/features\n",
      ".gitattributes": "docs export-ignore\n",
      "docs/a.txt": unique,
    };
    const app = await git.publish("app", files);
    await using world = await openDockerWorld(env);
    const { admin } = world;
    const body = { name: "app", repository: { url: git.link("app") } };
    const { id, template_name } = await admin.post<Workspace>("/api/v2/users/me/workspaces", body);
    expect(template_name).toBe("repository");
    const { agent_id, workspace } = await awaitAgent(admin, id);
    const runInWorkspace = (command: string): Promise<string> => runInTerminal(admin, agent_id, command);
    expect(
      await runInWorkspace("id -un; pwd; cat /word /docs/a.txt; echo; cat created; cat /features; echo $BOTH"),
    ).toBe(
      [
        "dev",
        "/workspaces/app",
        "it's",
        unique,
        "own",
        "base",
        "tool blue 1 dev /home/dev",
        "yes-/workspaces/app",
      ].join("\r\n"),
    );
    const loadLog = async (build: string): Promise<string> => {
      const lines = await admin.get<{ output: string }[]>(`/api/v2/workspacebuilds/${build}/logs`);
      return lines.map(({ output }) => output).join("\n");
    };
    const firstLog = await loadLog(workspace.latest_build.id);
    expect(firstLog).toContain("Building the image of the repository.");
    expect(firstLog).toContain(`Ignored in the feature ${tool}: privileged.`);
    expect(features.requests).not.toContain("a token");
    const requestCount = features.requests.length;

    await runInWorkspace("echo mine >mine; echo mine >>/cache/log");
    await createBuild(admin, id, "stop");
    await awaitBuild(admin, id);
    const startedAt = performance.now();
    await createBuild(admin, id, "start");
    const second = await awaitAgent(admin, id);
    process.stderr.write(`second start of a repository: ${Math.round(performance.now() - startedAt)} ms\n`);
    expect(await loadLog(second.workspace.latest_build.id)).toContain("Using the existing image of the repository");
    expect(features.requests.length).toBe(requestCount);
    expect(await runInTerminal(admin, second.agent_id, "cat mine /cache/log")).toBe(
      "mine\r\ncreated\r\nmine\r\ncreated",
    );

    // A second image exceeds the limit of this server, so the least recently used images are removed.
    app.write("docs/a.txt", `${unique} 2`);
    app.git("commit", "-q", "-a", "-m", "second");
    app.git("push", "-q", "hosted", "main");
    await createBuild(admin, id, "stop");
    await awaitBuild(admin, id);
    await using limitedWorld = await openDockerWorld({ ...env, SLIPWAY_REPOSITORY_IMAGES_MB: "0" });
    const otherWorkspace = await limitedWorld.admin.post<Workspace>("/api/v2/users/me/workspaces", body);
    const { workspace: otherBuild } = await awaitAgent(limitedWorld.admin, otherWorkspace.id);
    const lines = await limitedWorld.admin.get<{ output: string }[]>(
      `/api/v2/workspacebuilds/${otherBuild.latest_build.id}/logs`,
    );
    expect(lines.map(({ output }) => output).join("\n")).toContain("the least recently used one.");
    await deleteCompletely(limitedWorld, otherWorkspace.id);
    await deleteCompletely(world, id);
  },
  scaleTimeout(300_000),
);
