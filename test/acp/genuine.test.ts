// Genuine coding agents, as their vendors publish them: each does a turn in a workspace with an edit, asks a person, and calls its models
// through the gateway with the workspace's own token.
import { expect } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import type { CodingAgent, CodingAgents } from "#schema/ai/coding-agents.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { startAgentProcess } from "#test/api/agents/reach.ts";
import { pendingCalls } from "#test/support/acp/agent-world.ts";
import { AgentUpstream, SENTENCE } from "#test/support/acp/upstream.ts";
import { createChat } from "#test/support/chats.ts";
import { gatewayCalls, openGatewayWorld } from "#test/support/models/gateway-world.ts";
import { addModel, MODEL_KEY } from "#test/support/models/model-world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { seedAgent } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { messagesOf } from "#test/tools/world.ts";

const folder = needs.agents.file;

const turnOf = async (name: string, kind: "anthropic" | "openai" | "google" | "openai-compat", base: string) => {
  await using world = await openGatewayWorld({ clock: systemClock });
  const { server, owner } = world;
  const seeded = await seedAgent(server);
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const file = join(home, "proof.txt");
  await using upstream = new AgentUpstream(file, "made by the agent");
  await addModel({ owner, upstream } as never, kind, { is_default: false }, `My ${kind}`, base);
  const dialect = kind === "openai-compat" ? "openai" : kind;
  await owner.put<unknown>("/api/v2/ai/settings", {
    enabled: true,
    in_workspaces: true,
    names: [],
    default_names: { [dialect]: "test-model" },
  });
  const { agents } = await owner.get<CodingAgents>("/api/v2/ai/agents");
  const { name: _, is_preset: __, ...preset } = agents.find((agent) => agent.name === name) as CodingAgent;
  await owner.put<unknown>(`/api/v2/ai/agents/${name}`, Object.assign(preset, { enabled: true }));
  const env = { PATH: `${join(folder, "node_modules/.bin")}:${process.env.PATH}` };
  await using _daemon = await startAgentProcess(server, seeded, home, { env });
  try {
    const person = new Client(server.url, seeded.owner_token);
    const speaker = { owner: person, organization_id: seeded.organization_id };
    const { id } = await createChat(speaker, "Write proof.txt", {
      workspace_id: seeded.workspace_id,
      coding_agent: name,
      permissions: { default: "ask_changes", rules: [] },
    });
    const path = `/api/v2/chats/${id}`;
    const status = async () => {
      const chat = await person.get<Chat>(path);
      if (chat.last_error) throw new Error(JSON.stringify(chat.last_error));
      return chat.status;
    };
    await until(async () => (await status()) === "requires_action", { patience: 240_000 });
    expect(existsSync(file)).toBe(false);
    const [call] = await pendingCalls(person, id);
    expect(call?.tool_name).toMatch(/^(write_file|edit_files|execute)$/);
    await person.post(`${path}/permissions`, { answers: [{ tool_call_id: call?.tool_call_id, decision: "allow" }] });
    await until(async () => (await status()) === "waiting", { patience: 120_000 });
    expect(readFileSync(file, "utf8")).toBe("made by the agent");
    const messages = await messagesOf(person, id);
    expect(messages.at(-1)?.content.at(-1)?.text).toContain(SENTENCE);
    expect(messages.flatMap(({ content }) => content).find(({ type }) => type === "tool-result")?.is_error).toBe(false);
    const calls = await gatewayCalls(owner);
    expect(calls.length).toBeGreaterThanOrEqual(2);
    expect(new Set(calls.map(({ workspace_id }) => workspace_id))).toEqual(new Set([seeded.workspace_id]));
    expect(new Set(upstream.calls.map(({ key }) => key.replace("Bearer ", "")))).toEqual(new Set([MODEL_KEY]));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
};

testNeeding(
  [needs.agents],
  "[CA-11] Claude Code edits a file after a person has allowed it",
  () => turnOf("claude-code", "anthropic", "/v1"),
  400_000,
);
testNeeding(
  [needs.agents],
  "[CA-11] Codex runs a command after a person has allowed it",
  () => turnOf("codex", "openai", "/v1"),
  400_000,
);
testNeeding(
  [needs.agents],
  "[CA-11] Gemini CLI edits a file after a person has allowed it",
  () => turnOf("gemini", "google", "/v1beta"),
  400_000,
);
testNeeding(
  [needs.agents],
  "[CA-11] opencode edits a file after a person has allowed it",
  () => turnOf("opencode", "openai-compat", "/v1"),
  400_000,
);
