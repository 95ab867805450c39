// MCP tools, skills and instructions that a coding agent receives from its chat.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import type { McpServerConfig } from "#schema/chats/mcp-server.ts";
import { Client } from "#src/client.ts";
import { startMcpHost } from "#test/mcp/support.ts";
import {
  configureAgent,
  listPendingCalls,
  openAgentWorld,
  readAgentLog,
  startAgentChat,
} from "#test/support/acp/agent-world.ts";
import { sendMessage } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { listMessages } from "#test/tools/world.ts";

const world = await forFile(openAgentWorld({ env: { SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8" } }));
const mcpHost = await forFile(Promise.resolve(startMcpHost()));
const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
const server = await admin.post<McpServerConfig>(`/api/v2/organizations/${world.organization_id}/mcp-servers`, {
  slug: "desk",
  url: `${mcpHost.url}/mcp`,
  tool_allow_list: ["add", "echo"],
  auth_type: "api_key",
  api_key: "s3cret-of-the-desk",
  api_key_header: "X-Key",
});
const mcp_server_ids = [server.id];
const agentHome = (id: string) => join(world.home, ".local/state/slipway/coding-agents/homes", id);
const getChat = (id: string): Promise<Chat> => world.owner.get<Chat>(`/api/v2/chats/${id}`);
const getLastText = async (id: string) => (await listMessages(world.owner, id)).at(-1)?.content.at(-1)?.text;
const waitForText = (id: string, text: string) => until(async () => (await getLastText(id)) === text, { what: text });
const listResults = async (id: string) =>
  (await listMessages(world.owner, id)).flatMap(({ content }) =>
    content.flatMap(({ type, tool_name, result }) => (type === "tool-result" ? [[tool_name, result]] : [])),
  );
const answer = async (id: string, decision: "allow" | "deny"): Promise<unknown> => {
  const [call] = await until(async () => {
    const calls = await listPendingCalls(world.owner, id);
    return calls.length > 0 && calls;
  });
  const answers = [{ tool_call_id: call?.tool_call_id, decision }];
  await world.owner.post<unknown>(`/api/v2/chats/${id}/permissions`, { answers });
  return { tool_name: call?.tool_name, args: call?.args };
};

test("[CA-21] an agent calls the tools of the chat's MCP servers through Slipway and gets none of their secrets", async () => {
  const prompt = 'tools\nuse desk__add {"a":1,"b":2}\nsay done';
  const { id } = await startAgentChat(world, prompt, { permissions: null, mcp_server_ids });
  await waitForText(id, "done");
  const messages = await listMessages(world.owner, id);
  expect(messages[1]?.content[0]?.text).toBe("desk__add desk__echo");
  expect(await listResults(id)).toEqual([["agent_other", { output: "3" }]]);
  expect(mcpHost.seen.at(-1)?.get("x-key")).toBe("s3cret-of-the-desk");
  const leaks = Bun.spawnSync(["grep", "-rl", "s3cret-of-the-desk", world.home]).stdout.toString();
  expect(leaks).toBe("");
  // A chat's servers may change: the agent restarts with the new ones.
  await sendMessage(world, id, "tools", { mcp_server_ids: [] });
  await waitForText(id, "none");
  expect(readAgentLog(world, id).filter((line) => line === "load")).toHaveLength(1);
});

test("[CA-21] the chat's rules decide about each call before it runs, by the tool's own name", async () => {
  const permissions = { default: "ask_changes", rules: [{ tool: "desk__echo", action: "deny" }] };
  const prompt = 'use desk__echo {"a":1}\nuse desk__add {"a":1,"b":2}\nuse desk__add {"a":4,"b":2}\nsay done';
  const { id } = await startAgentChat(world, prompt, { permissions, mcp_server_ids });
  expect(await answer(id, "allow")).toEqual({ tool_name: "desk__add", args: { a: 1, b: 2 } });
  expect(await answer(id, "deny")).toEqual({ tool_name: "desk__add", args: { a: 4, b: 2 } });
  await waitForText(id, "done");
  const results = JSON.stringify(await listResults(id));
  expect(results).toContain('["desk__add",{"output":"3"}]');
  expect(results).not.toContain('"output":"6"');
  expect(results).toContain("did not allow this call");
});

test("[CA-21] after a person allows a call that the agent asked about, Slipway asks only about other calls", async () => {
  const permissions = { default: "ask_changes", rules: [] };
  const prompt = 'asked desk__add {"a":1,"b":2}\nuse desk__add {"a":1,"b":2}\nsay done';
  const { id } = await startAgentChat(world, prompt, { permissions, mcp_server_ids });
  const question = { title: "mcp__slipway__desk__add", a: 1, b: 2 };
  expect(await answer(id, "allow")).toEqual({ tool_name: "agent_other", args: question });
  expect(await answer(id, "deny")).toEqual({ tool_name: "desk__add", args: { a: 1, b: 2 } });
  await waitForText(id, "done");
  expect((await listResults(id))[0]).toEqual(["agent_other", { output: "3" }]);
});

test("[CA-21] refuses other programs access to a running agent's tools, and warns about agents without MCP support", async () => {
  const { id } = await startAgentChat(world, "tools\nwait", { permissions: null, mcp_server_ids });
  await until(() => readAgentLog(world, id).some((line) => line.startsWith("prompt")));
  const [serversLine = ""] = readFileSync(join(agentHome(id), "mcp-servers.json"), "utf8").split("\n");
  const [{ url = "" } = {}] = JSON.parse(serversLine) as { url?: string }[];
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const fetchStatus = async (headers: Record<string, string>) =>
    (await fetch(url, { method: "POST", headers, body })).status;
  expect(await fetchStatus({})).toBe(401);
  expect(await fetchStatus({ authorization: "Bearer guess" })).toBe(401);
  await world.owner.post<unknown>(`/api/v2/chats/${id}/interrupt`, {});

  await configureAgent(world, "no-mcp", { variables: { TEST_AGENT_NO_MCP: "1" } });
  const settings = { coding_agent: "no-mcp", permissions: null, mcp_server_ids };
  const chatWithoutMcp = await startAgentChat(world, "say hello", settings);
  await waitForText(chatWithoutMcp.id, "hello");
  expect((await getChat(chatWithoutMcp.id)).warnings.join()).toContain("does not support MCP servers");
});

test("[CA-22] writes instructions and skills to the agent's own home, and leaves the repository unchanged", async () => {
  const { home, owner } = world;
  writeFileSync(join(home, "AGENTS.md"), "Read by everyone.\n");
  writeFileSync(join(home, "CLAUDE.md"), "Read by this agent.\n");
  mkdirSync(join(home, ".agents/skills/release"), { recursive: true });
  const skill = "---\nname: release\ndescription: How to release.\n---\n\nTag it.\n";
  writeFileSync(join(home, ".agents/skills/release/SKILL.md"), skill);
  await owner.post<unknown>("/api/v2/users/me/skills", {
    name: "tidy",
    description: "How to tidy.",
    content: "Sort it.",
  });
  const filesBefore = readdirSync(home).sort();
  const agentFiles = {
    instructions_file: ".agent/RULES.md",
    skills_folder: ".agent/skills",
    own_instructions: ["CLAUDE.md"],
  };
  await configureAgent(world, "reader", agentFiles);
  const startChat = () =>
    startAgentChat(world, "say read", { coding_agent: "reader", permissions: null, system_prompt: "Be brief." });
  const { id } = await until(async () => {
    const chat = await startChat();
    await waitForText(chat.id, "read");
    return existsSync(join(agentHome(chat.id), ".agent/skills/release")) && chat;
  });
  const rules = readFileSync(join(agentHome(id), ".agent/RULES.md"), "utf8");
  expect(rules).toContain("Be brief.");
  expect(rules).toContain("Read by everyone.");
  expect(rules).not.toContain("Read by this agent.");
  expect(readFileSync(join(agentHome(id), ".agent/skills/release/SKILL.md"), "utf8")).toBe(skill);
  expect(readFileSync(join(agentHome(id), ".agent/skills/tidy/SKILL.md"), "utf8")).toBe(
    '---\nname: tidy\ndescription: "How to tidy."\n---\n\nSort it.\n',
  );
  expect(readdirSync(home).sort()).toEqual(filesBefore);
  expect(readAgentLog(world, id).at(-1)).toBe('prompt "say read"');

  // Without files, only the first prompt contains the instructions and skills.
  const promptOnly = await startAgentChat(world, "say plain", { permissions: null, system_prompt: "Be brief." });
  await waitForText(promptOnly.id, "plain");
  await sendMessage(world, promptOnly.id, "say again");
  await waitForText(promptOnly.id, "again");
  const [firstPrompt = "", secondPrompt] = readAgentLog(world, promptOnly.id).filter((line) =>
    line.startsWith("prompt"),
  );
  for (const part of ["<instructions>", "Be brief.", "Read by everyone.", ".agents/skills/release", "Sort it."]) {
    expect(firstPrompt).toContain(part);
  }
  expect(secondPrompt).toBe('prompt "say again"');
});
