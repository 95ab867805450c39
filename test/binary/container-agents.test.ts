// Genuine coding agents in a container: each does a turn with an approval and calls its models through the gateway.
import { expect } from "bun:test";
import { dirname } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import { enablePreset } from "#test/support/acp/agent-gateway.ts";
import { pendingCalls } from "#test/support/acp/agent-world.ts";
import { AgentUpstream, SENTENCE, WRITTEN } from "#test/support/acp/upstream.ts";
import { createChat } from "#test/support/chats.ts";
import { awaitAgent, deleteAll, IMAGE, openDockerWorld, shell } from "#test/support/docker/docker-world.ts";
import { gatewayCalls, setGateway } from "#test/support/models/gateway-world.ts";
import { addModel } from "#test/support/models/model-world.ts";
import { compiled, type Need, needs, testNeeding } from "#test/support/needs.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { createWorkspace } from "#test/support/workspaces.ts";
import { messagesOf } from "#test/tools/world.ts";

/** Run by hand: the image with the agents takes a minute. Names with commas, such as `codex,gemini`. */
const AGENTS = (Bun.env.SLIPWAY_TEST_CONTAINER_AGENTS ?? "").split(",").filter(Boolean);
const byHand: Need = {
  found: AGENTS.length > 0,
  reason: "runs by hand, with the names of agents in SLIPWAY_TEST_CONTAINER_AGENTS",
  file: "",
};
const IMAGE_WITH_AGENTS = "slipway-agents:1";

/** The tests' image with node and the agents, offline. What it is made of is copied, since workspaces mount no folders of the machine. */
const makeImage = async (): Promise<void> => {
  const docker = ["docker", "-H", needs.docker.file];
  const [name, node] = ["slipway-agents-image", needs.node.file];
  // Of node and of Claude Code.
  const known = await Bun.$`ldconfig -p`.text();
  const libraries = ["libstdc++.so.6", "librt.so.1"].map(
    (library) =>
      known
        .split("\n")
        .find((line) => line.includes(library))
        ?.split("=> /")[1] ?? "",
  );
  const path = "/opt/agents/node_modules/.bin:/usr/local/bin:/usr/bin:/bin";
  await Bun.$`${docker} rm -f ${name}`.quiet().nothrow();
  try {
    await Bun.$`${docker} run --name ${name} -u root ${IMAGE} ln -sf /bin/busybox /usr/bin/env`.quiet();
    await Bun.$`tar -ch -C ${dirname(node)} node | ${docker} cp - ${name}:/usr/bin`.quiet();
    await Bun.$`tar -ch -C / ${libraries} | ${docker} cp - ${name}:/`.quiet();
    await Bun.$`tar -c --transform s,^,opt/agents/,S -C ${needs.agents.file} node_modules | ${docker} cp - ${name}:/`.quiet();
    await Bun.$`${docker} commit -c ${`ENV PATH=${path}`} -c ${"USER dev"} ${name} ${IMAGE_WITH_AGENTS}`.quiet();
  } finally {
    await Bun.$`${docker} rm -f ${name}`.quiet().nothrow();
  }
};

testNeeding(
  [compiled, byHand, needs.docker, needs.agents, needs.node],
  "[CA-11] genuine agents write a file in a container after a person has allowed it",
  async () => {
    const begun = performance.now();
    const tell = (what: string) => Bun.write(Bun.stderr, `${what}: ${Math.round(performance.now() - begun)} ms\n`);
    await makeImage();
    await tell("image");
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
    await setGateway(admin, { default_names: { anthropic: "test-model", openai: "test-model", google: "test-model" } });
    const template = await makeTemplate(
      admin,
      `
provisioner: docker
resources:
  - name: dev
    docker: {image: "${IMAGE_WITH_AGENTS}"}
    agents: [{name: main, env: {PATH: "/opt/agents/node_modules/.bin:$PATH"}}]
`,
    );
    const { id, organization_id } = await createWorkspace(admin, template.id, "agents");
    const { agent_id } = await awaitAgent(admin, id);
    await tell("workspace");
    for (const name of AGENTS) {
      await enablePreset(admin, name);
      const file = `/home/dev/proof-${name}.txt`;
      const chat = await createChat({ owner: admin, organization_id }, `Write ${file}`, {
        workspace_id: id,
        coding_agent: name,
        permissions: { default: "ask_changes", rules: [] },
      });
      const status = async () => {
        const found = await admin.get<Chat>(`/api/v2/chats/${chat.id}`);
        if (found.last_error) throw new Error(JSON.stringify(found.last_error));
        return found.status;
      };
      await until(async () => (await status()) === "requires_action", { patience: 240_000 });
      const [call] = await pendingCalls(admin, chat.id);
      await admin.post<unknown>(`/api/v2/chats/${chat.id}/permissions`, {
        answers: [{ tool_call_id: call?.tool_call_id, decision: "allow" }],
      });
      await until(async () => (await status()) === "waiting", { patience: 120_000 });
      expect(await shell(admin, agent_id, `cat ${file}`)).toBe(WRITTEN);
      expect((await messagesOf(admin, chat.id)).at(-1)?.content.at(-1)?.text).toContain(SENTENCE);
      expect((await gatewayCalls(admin)).filter(({ chat_id }) => chat_id === chat.id).length).toBeGreaterThanOrEqual(2);
      await tell(name);
    }
    await deleteAll(world, id);
  },
  600_000,
);
