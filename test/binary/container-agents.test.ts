// Real coding agents in a container: each one runs support/acp/genuine-story.ts and calls its models through the gateway.
import { expect } from "bun:test";
import { basename, dirname } from "node:path";
import { getVolumeName, WORKSPACE_LABEL } from "#src/provisioners/docker/volumes.ts";
import { enablePreset } from "#test/support/acp/agent-gateway.ts";
import { AgentStory, type StoryWorld } from "#test/support/acp/genuine-story.ts";
import { AgentUpstream } from "#test/support/acp/upstream.ts";
import {
  awaitAgent,
  type DockerWorld,
  deleteCompletely,
  IMAGE,
  openDockerWorld,
  runInTerminal,
} from "#test/support/docker/docker-world.ts";
import { listGatewayCalls, putGatewaySettings } from "#test/support/models/gateway-world.ts";
import { addModel, MODEL_KEY } from "#test/support/models/model-world.ts";
import { compiled, needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const AGENTS = (Bun.env.SLIPWAY_TEST_CONTAINER_AGENTS ?? "codex,claude-code").split(",");
const REPOSITORY = "/home/dev/work";

/** Creates the test image from this machine's node and git and their libraries. */
const makeImage = async (name: string): Promise<void> => {
  const docker = ["docker", "-H", needs.docker.file];
  const programs = [needs.node.file, needs.git.file];
  const knownLibraries = await Bun.$`ldconfig -p`.text();
  // Libraries of node, git and Claude Code.
  const libraries = ["libstdc++.so.6", "librt.so.1", "libpcre2-8.so.0", "libz.so.1"].map(
    (library) =>
      knownLibraries
        .split("\n")
        .find((line) => line.includes(library))
        ?.split("=> /")[1] ?? "",
  );
  await Bun.$`${docker} rm -f ${name}`.quiet().nothrow();
  try {
    await Bun.$`${docker} run --name ${name} -u root ${IMAGE} ln -sf /bin/busybox /usr/bin/env`.quiet();
    for (const program of programs)
      await Bun.$`tar -ch -C ${dirname(program)} ${basename(program)} | ${docker} cp - ${name}:/usr/bin`.quiet();
    await Bun.$`tar -ch -C / ${libraries} | ${docker} cp - ${name}:/`.quiet();
    const path = "ENV PATH=/opt/agents/node_modules/.bin:/usr/local/bin:/usr/bin:/bin";
    await Bun.$`${docker} commit -c ${path} -c ${"USER dev"} ${name} ${name}:1`.quiet();
  } finally {
    await Bun.$`${docker} rm -f ${name}`.quiet().nothrow();
  }
};

/**
 * Starts a workspace with this machine's agents folder as a read-only volume, which saves copying half a gigabyte. The volume's name
 * contains the workspace's ID, so the first build fails without the image and only creates the workspace.
 */
const openWorkspace = async (world: DockerWorld) => {
  const { admin, engine } = world;
  const image = `slipway-agents-${crypto.randomUUID()}`;
  const template = await makeTemplate(
    admin,
    `
provisioner: docker
resources:
  - name: dev
    docker:
      image: "${image}:1"
      pull: never
      volumes: [{name: agents, path: /opt/agents, read_only: true}]
    agents: [{name: main, env: {PATH: "/opt/agents/node_modules/.bin:$PATH"}}]
`,
  );
  const { id, organization_id } = await createWorkspace(admin, template.id, "agents");
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "failed");
  await makeImage(image);
  const volume = getVolumeName(id, "agents");
  const options = { type: "none", o: "bind,ro", device: needs.agents.file };
  await engine.json("create a volume", "POST", "/volumes/create", {
    body: { Name: volume, Labels: { [WORKSPACE_LABEL]: id }, Driver: "local", DriverOpts: options },
  });
  await createBuild(admin, id, "start");
  const { agent_id } = await awaitAgent(admin, id);
  return {
    id,
    organization_id,
    agent_id,
    async [Symbol.asyncDispose]() {
      await deleteCompletely(world, id);
      await Bun.$`docker -H ${needs.docker.file} rmi -f ${image}:1`.quiet();
    },
  };
};

testNeeding(
  [compiled, needs.docker, needs.root, needs.agents, needs.node, needs.git],
  "[CA-11] real agents edit a repository in a container after approval, and are interrupted, killed, resumed and undone",
  async () => {
    const startedAt = performance.now();
    const printTime = async (step: string): Promise<void> => {
      if (!Bun.env.SLIPWAY_REPORT) return;
      await Bun.write(Bun.stderr, `${step}: ${Math.round(performance.now() - startedAt)} ms\n`);
    };
    await using upstream = new AgentUpstream();
    await using world = await openDockerWorld({ SLIPWAY_MODEL_HOSTS: "127.0.0.1", SLIPWAY_CHAT_TITLES: "false" });
    const { admin } = world;
    for (const [kind, base] of [
      ["anthropic", "/v1"],
      ["openai", "/v1"],
      ["google", "/v1beta"],
    ] as const) {
      await addModel({ owner: admin, upstream } as never, kind, { is_default: false }, `My ${kind}`, base);
    }
    await putGatewaySettings(admin, {
      default_names: { anthropic: "test-model", openai: "test-model", google: "test-model" },
    });
    await using workspace = await openWorkspace(world);
    const run = (command: string): Promise<string> => runInTerminal(admin, workspace.agent_id, command);
    await run(`git init -q ${REPOSITORY}`);
    await printTime("workspace");
    const storyWorld: StoryWorld = {
      owner: admin,
      organization_id: workspace.organization_id,
      workspace_id: workspace.id,
      upstream,
      repository: REPOSITORY,
      read: async (path) => (await run(`cat ${path} 2>/dev/null`)) || undefined,
      status: () => run(`git -C ${REPOSITORY} status --porcelain`),
    };
    for (const name of AGENTS) {
      await enablePreset(admin, name);
      const story = await AgentStory.start(storyWorld, name);
      await story.edit();
      await story.interrupt();
      await story.resume();
      await story.undo();
      const calls = (await listGatewayCalls(admin)).filter(({ chat_id }) => chat_id === story.id);
      expect(calls.length).toBeGreaterThanOrEqual(5);
      await printTime(name);
    }
    // The provider's key exists only on the server.
    const files = "find /home/dev /tmp -type f -print0 | xargs -0 grep -ls";
    const search = `${files} ${MODEL_KEY}; grep -ls ${MODEL_KEY} /proc/[0-9]*/environ 2>/dev/null; echo searched`;
    expect(await run(search)).toBe("searched");
  },
  scaleTimeout(600_000),
);
