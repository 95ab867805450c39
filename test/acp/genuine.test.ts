// Genuine coding agents, as their vendors publish them: each does a turn in a workspace with an edit, asks a person, and calls its models
// through the gateway with the chat's own token.
import { expect } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findSnapshot, findWorkspaceContext } from "#db/chats/context.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { McpServerConfig } from "#schema/chats/mcp-server.ts";
import { startMcpHost } from "#test/mcp/support.ts";
import { enablePreset, openAgentGateway } from "#test/support/acp/agent-gateway.ts";
import { beginAgentChat, pendingCalls } from "#test/support/acp/agent-world.ts";
import { SENTENCE, WRITTEN } from "#test/support/acp/upstream.ts";
import { forFile } from "#test/support/for-file.ts";
import { gatewayCalls } from "#test/support/models/gateway-world.ts";
import { MODEL_KEY } from "#test/support/models/model-world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { contextOf } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { messagesOf } from "#test/tools/world.ts";

const { found, file: folder } = needs.agents;
const PATH = `${join(folder, "node_modules/.bin")}:${process.env.PATH}`;
// One workspace for all of them, one after the other: each takes both cores for its start.
const world = found ? await forFile(openAgentGateway({ env: { PATH } })) : undefined;

const host = found ? await forFile(Promise.resolve(startMcpHost())) : undefined;
const servers: string[] = [];
if (world && host) {
  const body = { slug: "desk", url: `${host.url}/mcp`, tool_allow_list: ["add"] };
  const at = `/api/v2/organizations/${world.organization_id}/mcp-servers`;
  servers.push((await world.admin.post<McpServerConfig>(at, body)).id);
  const skill = join(world.home, ".agents/skills/release");
  mkdirSync(skill, { recursive: true });
  writeFileSync(
    join(skill, "SKILL.md"),
    "---\nname: release\ndescription: How the workspace is released.\n---\nTag it.\n",
  );
  const own = { name: "tidy", description: "How the person tidies up.", content: "Sort it." };
  await world.owner.post<unknown>("/api/v2/users/me/skills", own);
  const { store } = contextOf(world.server);
  const { workspace_id } = world.seeded;
  await until(async () => {
    const context = await store.get(findWorkspaceContext({ workspace_id }));
    const snapshot = context && (await store.get(findSnapshot({ id: context.snapshot })));
    return snapshot?.resources.some(({ skill_name }) => skill_name === "release");
  });
}
/** What the model learns of the chat, in whatever form the agent has for it. */
const GIVEN = [
  "Answer in the words of pirates.",
  "How the workspace is released.",
  "How the person tidies up.",
  "desk__add",
];

const turnOf = async (name: string): Promise<void> => {
  if (!world) throw new Error("the agents are not there");
  const { admin, owner, seeded, home, upstream } = world;
  const file = join(home, `proof-${name}.txt`);
  await enablePreset(admin, name);
  const permissions = { default: "ask_changes", rules: [] };
  const begun = upstream.bodies.length;
  const more = { coding_agent: name, permissions, mcp_server_ids: servers, system_prompt: GIVEN[0] };
  const { id } = await beginAgentChat(world, `Write ${file}`, more);
  const path = `/api/v2/chats/${id}`;
  const status = async () => {
    const chat = await owner.get<Chat>(path);
    if (chat.last_error) throw new Error(JSON.stringify(chat.last_error));
    return chat.status;
  };
  await until(async () => (await status()) === "requires_action", { patience: 240_000 });
  expect(existsSync(file)).toBe(false);
  const [call] = await pendingCalls(owner, id);
  expect(call?.tool_name).toMatch(/^(write_file|edit_files|execute)$/);
  await owner.post(`${path}/permissions`, { answers: [{ tool_call_id: call?.tool_call_id, decision: "allow" }] });
  await until(async () => (await status()) === "waiting", { patience: 120_000 });
  expect(readFileSync(file, "utf8")).toBe(WRITTEN);
  const messages = await messagesOf(owner, id);
  expect(messages.at(-1)?.content.at(-1)?.text).toContain(SENTENCE);
  expect(messages.flatMap(({ content }) => content).find(({ type }) => type === "tool-result")?.is_error).toBe(false);
  const asked = upstream.bodies.slice(begun).join("\n");
  expect(GIVEN.filter((text) => !asked.includes(text))).toEqual([]);
  const calls = (await gatewayCalls(admin)).filter(({ chat_id }) => chat_id === id);
  expect(calls.length).toBeGreaterThanOrEqual(2);
  expect(new Set(calls.map(({ workspace_id }) => workspace_id))).toEqual(new Set([seeded.workspace_id]));
  expect(new Set(upstream.calls.map(({ key }) => key.replace("Bearer ", "")))).toEqual(new Set([MODEL_KEY]));
};

testNeeding(
  [needs.agents],
  "[CA-11] Claude Code edits a file after a person has allowed it",
  () => turnOf("claude-code"),
  400_000,
);
testNeeding(
  [needs.agents],
  "[CA-11] Codex runs a command after a person has allowed it",
  () => turnOf("codex"),
  400_000,
);
testNeeding(
  [needs.agents],
  "[CA-11] Gemini CLI edits a file after a person has allowed it",
  () => turnOf("gemini"),
  400_000,
);
testNeeding(
  [needs.agents],
  "[CA-11] opencode edits a file after a person has allowed it",
  () => turnOf("opencode"),
  400_000,
);
testNeeding(
  [needs.agents],
  "[CA-13] every model call of an agent counts for its chat",
  async () => {
    const calls = world ? await gatewayCalls(world.admin) : [];
    expect(calls.filter(({ chat_id }) => chat_id === null)).toEqual([]);
  },
  60_000,
);
