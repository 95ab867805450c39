// Genuine coding agents from their vendors. Each runs support/acp/genuine-story.ts in a workspace and calls its models through the gateway
// with the chat's own token.
import { expect } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findSnapshot, findWorkspaceContext } from "#db/chats/context.ts";
import type { McpServerConfig } from "#schema/chats/mcp-server.ts";
import { startMcpHost } from "#test/mcp/support.ts";
import { enablePreset, openAgentGateway } from "#test/support/acp/agent-gateway.ts";
import { AgentStory, type StoryWorld } from "#test/support/acp/genuine-story.ts";
import { forFile } from "#test/support/for-file.ts";
import { listGatewayCalls } from "#test/support/models/gateway-world.ts";
import { MODEL_KEY } from "#test/support/models/model-world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { makeRepository } from "#test/support/repository.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

const { found, file: folder } = needs.agents;
const PATH = `${join(folder, "node_modules/.bin")}:${process.env.PATH}`;
// All agents use one workspace, one after the other, because an agent uses both cores while it starts.
const world = found ? await forFile(openAgentGateway({ env: { PATH } })) : undefined;

const mcpHost = found ? await forFile(Promise.resolve(startMcpHost())) : undefined;
const mcp_server_ids: string[] = [];
const repository = world && makeRepository(join(world.home, "work"), { empty: true });
if (world && mcpHost) {
  const body = { slug: "desk", url: `${mcpHost.url}/mcp`, tool_allow_list: ["add"] };
  const path = `/api/v2/organizations/${world.organization_id}/mcp-servers`;
  mcp_server_ids.push((await world.admin.post<McpServerConfig>(path, body)).id);
  const skillFolder = join(world.home, ".agents/skills/release");
  mkdirSync(skillFolder, { recursive: true });
  writeFileSync(
    join(skillFolder, "SKILL.md"),
    "---\nname: release\ndescription: How the workspace is released.\n---\nTag it.\n",
  );
  const userSkill = { name: "tidy", description: "How the person tidies up.", content: "Sort it." };
  await world.owner.post<unknown>("/api/v2/users/me/skills", userSkill);
  const { store } = getContext(world.server);
  const { workspace_id } = world.seeded;
  await until(async () => {
    const context = await store.get(findWorkspaceContext({ workspace_id }));
    const snapshot = context && (await store.get(findSnapshot({ id: context.snapshot })));
    return snapshot?.resources.some(({ skill_name }) => skill_name === "release");
  });
}
/** The chat's instructions and skills, which every agent must send to its model. */
const EXPECTED_CONTEXT = [
  "Answer in the words of pirates.",
  "How the workspace is released.",
  "How the person tidies up.",
];
/** The MCP server's tool. It is expected later, because an agent may send its first prompt before it has connected to its servers. */
const EXPECTED_TOOL = "desk__add";

const runStory = async (name: string): Promise<void> => {
  if (!world || !repository) throw new Error("the coding agents are not installed");
  const { admin, seeded, upstream } = world;
  await enablePreset(admin, name);
  const bodyCount = upstream.bodies.length;
  const storyWorld: StoryWorld = Object.assign({}, world, {
    workspace_id: seeded.workspace_id,
    repository: repository.root,
    read: async (path: string) => (existsSync(path) ? readFileSync(path, "utf8") : undefined),
    status: async () => repository.git("status", "--porcelain"),
  });
  const story = await AgentStory.start(storyWorld, name, {
    mcp_server_ids,
    system_prompt: EXPECTED_CONTEXT[0],
  });
  await story.edit();
  const readModelRequests = (): string => upstream.bodies.slice(bodyCount).join("\n");
  const firstRequests = readModelRequests();
  expect(EXPECTED_CONTEXT.filter((text) => !firstRequests.includes(text))).toEqual([]);
  await story.interrupt();
  await story.resume();
  await story.undo();
  expect(readModelRequests()).toContain(EXPECTED_TOOL);
  const calls = (await listGatewayCalls(admin)).filter(({ chat_id }) => chat_id === story.id);
  expect(calls.length).toBeGreaterThanOrEqual(5);
  expect(new Set(calls.map(({ workspace_id }) => workspace_id))).toEqual(new Set([seeded.workspace_id]));
  expect(new Set(upstream.calls.map(({ key }) => key.replace("Bearer ", "")))).toEqual(new Set([MODEL_KEY]));
};

testNeeding(
  [needs.agents],
  "[CA-11] Claude Code edits a repository after approval, is interrupted, killed and resumed, and has its edit undone",
  () => runStory("claude-code"),
  scaleTimeout(400_000),
);
testNeeding(
  [needs.agents],
  "[CA-11] Codex runs a command in a repository after approval, is interrupted, killed and resumed, and has its changes undone",
  () => runStory("codex"),
  scaleTimeout(400_000),
);
testNeeding(
  [needs.agents],
  "[CA-11] Gemini CLI edits a repository after approval, is interrupted, killed and resumed, and has its edit undone",
  () => runStory("gemini"),
  scaleTimeout(400_000),
);
testNeeding(
  [needs.agents],
  "[CA-11] opencode edits a repository after approval, is interrupted, killed and resumed, and has its edit undone",
  () => runStory("opencode"),
  scaleTimeout(400_000),
);
testNeeding([needs.agents], "[CA-13] the ledger charges every model call of an agent to its chat", async () => {
  const calls = world ? await listGatewayCalls(world.admin) : [];
  expect(calls.filter(({ chat_id }) => chat_id === null)).toEqual([]);
});
