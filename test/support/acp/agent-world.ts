// A chat with a coding agent: a real server, a real daemon, and ./agent.ts as the agent's program.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { CodingAgentInput } from "#schema/ai/coding-agents.ts";
import type { Chat } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { createChat } from "#test/support/chats.ts";
import { seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { listMessages, openToolWorld, type ToolWorld } from "#test/tools/world.ts";

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
  overrides: Partial<CodingAgentInput> = {},
): Promise<void> => {
  const { token } = await seedUser(world.server, { roles: ["owner"] });
  const admin = new Client(world.server.url, token);
  const body: CodingAgentInput = Object.assign({}, TEST_AGENT, overrides);
  await admin.put<unknown>(`/api/v2/ai/agents/${name}`, body);
};

export const openAgentWorld = async (options: Parameters<typeof openToolWorld>[0] = {}): Promise<ToolWorld> => {
  const world = await openToolWorld(options);
  await configureAgent(world, "test");
  return world;
};

export type AgentWorld = Pick<ToolWorld, "owner" | "organization_id" | "seeded" | "home">;

/** Creates a chat with the agent in the world's workspace. */
export const startAgentChat = (
  world: AgentWorld,
  text: string,
  overrides: Record<string, unknown> = {},
): Promise<Chat> =>
  createChat(world, text, Object.assign({ workspace_id: world.seeded.workspace_id, coding_agent: "test" }, overrides));

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
  const output = Bun.spawnSync([
    "sh",
    "-c",
    "grep -lzs 'HOME=.*/homes/'$0'$' /proc/[0-9]*/environ || true",
    id,
  ]).stdout.toString();
  return output.split("\n").flatMap((line) => line.match(/\d+/)?.map(Number) ?? []);
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

/** Returns the actions of a person in the chats of the world's owner. */
export const makeChatSteps = ({ owner }: Pick<AgentWorld, "owner">) => ({
  waitForStatus: (id: string, status: string) =>
    until(async () => (await owner.get<Chat>(`/api/v2/chats/${id}`)).status === status, { what: `${status} of ${id}` }),
  describeMessages: async (id: string): Promise<string[]> =>
    (await listMessages(owner, id)).map(
      ({ role, content }) =>
        `${role}: ${content.map((part) => part.text ?? (part.type === "tool-result" ? JSON.stringify(part.result) : part.tool_name)).join("|")}`,
    ),
  /** Answers the first call that waits for approval. */
  answer: async (id: string, decision: "allow" | "deny", overrides: object = {}): Promise<void> => {
    const [call] = await until(async () => {
      const calls = await listPendingCalls(owner, id);
      return calls.length > 0 && calls;
    });
    const permissionAnswer = Object.assign({ tool_call_id: call?.tool_call_id, decision }, overrides);
    await owner.post<unknown>(`/api/v2/chats/${id}/permissions`, { answers: [permissionAnswer] });
  },
});

/** Lets the rules of a chat ask before changes. */
export const ASK_BEFORE_CHANGES = { permissions: { default: "ask_changes", rules: [] } };
/** The owner's permissions, which allow everything. */
export const ALLOW_EVERYTHING = { permissions: null };
