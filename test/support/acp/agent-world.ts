// A chat with a coding agent: a real server, a real daemon, and ./agent.ts as the agent's program.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { CodingAgentInput } from "#schema/ai/coding-agents.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { createChat } from "#test/support/chats.ts";
import { seedUser } from "#test/support/seed.ts";
import { openToolWorld, type ToolWorld } from "#test/tools/world.ts";

export const TEST_AGENT: CodingAgentInput = {
  display_name: "Test agent",
  icon: "",
  enabled: true,
  command: process.execPath,
  arguments: ["--no-env-file", join(import.meta.dir, "agent.ts")],
  variables: {},
  install_script: "",
  dialect: "openai",
  auth_method: "",
  mode: "",
};

/** Configures an agent as an owner of the deployment. */
export const configureAgent = async (
  world: Pick<ToolWorld, "server">,
  name: string,
  more: Partial<CodingAgentInput> = {},
): Promise<void> => {
  const { token } = await seedUser(world.server, { roles: ["owner"] });
  const admin = new Client(world.server.url, token);
  const body: CodingAgentInput = Object.assign({}, TEST_AGENT, more);
  await admin.put<unknown>(`/api/v2/ai/agents/${name}`, body);
};

export const openAgentWorld = async (options: Parameters<typeof openToolWorld>[0] = {}): Promise<ToolWorld> => {
  const world = await openToolWorld(options);
  await configureAgent(world, "test");
  return world;
};

export type AgentWorld = Pick<ToolWorld, "owner" | "organization_id" | "seeded" | "home">;

/** Creates a chat with the agent in the world's workspace. */
export const startAgentChat = (world: AgentWorld, text: string, more: Record<string, unknown> = {}): Promise<Chat> =>
  createChat(world, text, Object.assign({ workspace_id: world.seeded.workspace_id, coding_agent: "test" }, more));

/** Returns the log of a chat's agent. */
export const readAgentLog = (world: Pick<AgentWorld, "home">, chat_id: string): string[] => {
  const path = join(world.home, ".local/state/slipway/coding-agents/homes", chat_id, "agent.log");
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
};

type Part = {
  readonly type: string;
  readonly tool_call_id?: string;
  readonly tool_name?: string;
  readonly args?: unknown;
};

/** Returns the calls of a chat that wait for approval. */
export const listPendingCalls = async (client: Client, id: string): Promise<Part[]> => {
  const { status } = await client.get<Chat>(`/api/v2/chats/${id}`);
  if (status !== "requires_action") return [];
  const { messages } = await client.get<{ messages: { content: Part[] }[] }>(`/api/v2/chats/${id}/messages?limit=200`);
  const parts = messages.flatMap(({ content }) => content);
  const done = new Set(parts.flatMap((part) => (part.type === "tool-result" ? [part.tool_call_id] : [])));
  return parts.filter((part) => part.type === "tool-call" && !done.has(part.tool_call_id));
};

/** Returns the process IDs of a chat's agents, including those in containers of this machine. */
export const findAgentProcesses = (id: string): number[] => {
  const listed = Bun.spawnSync([
    "sh",
    "-c",
    "grep -lzs 'HOME=.*/homes/'$0'$' /proc/[0-9]*/environ || true",
    id,
  ]).stdout.toString();
  return listed.split("\n").flatMap((line) => line.match(/\d+/)?.map(Number) ?? []);
};
export const killAgents = (id: string): void => {
  for (const pid of findAgentProcesses(id)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The process has ended with its parent.
    }
  }
};
