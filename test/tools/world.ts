// A chat in a workspace: a real server and a real daemon, a model controlled by the test, and the chat's output.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import type { ChatMessage, MessagePage } from "#schema/chats/chat.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { Client } from "#src/client.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import { startAgentProcess } from "#test/api/agents/reach.ts";
import { createChat, Follower } from "#test/support/chats.ts";
import { type ScriptedCall, ScriptedModels } from "#test/support/models/scripted-models.ts";
import { type SeededAgent, type SeedOptions, seedAgent } from "#test/support/seed.ts";
import { startTestServer, tempDirectory } from "#test/support/server.ts";

export type Result = Record<string, unknown> & { output?: string; error?: string };

/**
 * Starts a server and a daemon whose workspace chats can use. With `models`, chats use those instead of the scripted models, and
 * `models.next` of the world waits forever.
 */
export const openToolWorld = async (
  options: {
    models?: LanguageModels;
    env?: Record<string, string>;
    agentEnv?: Record<string, string>;
    seed?: SeedOptions;
  } = {},
) => {
  const models = new ScriptedModels();
  const directory = tempDirectory();
  const start = (address = "127.0.0.1:0") =>
    startTestServer({
      models: options.models ?? models,
      clock: systemClock,
      directory: directory.path,
      env: { SLIPWAY_ADDRESS: address, ...options.env },
    });
  let server = await start();
  const seeded: SeededAgent = await seedAgent(server, options.seed);
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const daemon = await startAgentProcess(server, seeded, home, { env: options.agentEnv ?? {} });
  const { organization_id } = seeded;
  const world = {
    models,
    seeded,
    home,
    daemon,
    organization_id,
    owner: new Client(server.url, seeded.owner_token),
    get server() {
      return server;
    },
    /** Restarts the server on the same data and address; the daemon reconnects automatically. */
    async restart(): Promise<void> {
      const { host } = server.url;
      await server[Symbol.asyncDispose]();
      server = await start(host);
    },
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
      directory[Symbol.dispose]();
    },
  };
  return world;
};
export type ToolWorld = Awaited<ReturnType<typeof openToolWorld>>;

/** Creates a chat in the world's workspace, and returns the first call of its model. */
export const openChat = async (world: ToolWorld, options: Record<string, unknown> = {}) => {
  const chat = await createChat(world, "go", { workspace_id: world.seeded.workspace_id, ...options });
  return { id: chat.id, call: await world.models.next() };
};

/** Lets the model call these tools in one step. Returns the results and the model's next call. */
export const callTools = async (
  world: Pick<ToolWorld, "models">,
  call: ScriptedCall,
  ...calls: readonly (readonly [name: string, args?: unknown])[]
): Promise<{ results: Result[]; parts: MessagePart[]; next: ScriptedCall }> => {
  for (const [index, [name, args]] of calls.entries()) call.callTool(`call-${index}`, name, args ?? {});
  call.finish("tool_calls");
  const next = await world.models.next();
  const { messages } = next.request;
  const parts = messages
    .slice(messages.findLastIndex(({ role }) => role === "assistant") + 1)
    .flatMap(({ content }) => content);
  return { results: parts.map(({ result }) => result as Result), parts, next };
};

export const listMessages = async (client: Client, id: string): Promise<ChatMessage[]> => {
  const { messages } = await client.get<MessagePage>(`/api/v2/chats/${id}/messages?limit=200`);
  return messages.reverse();
};

/** Returns the live output of calls that this follower has received so far. */
export const joinOutput = ({ events }: Follower): string =>
  events
    .flatMap((event) => (event.type === "message_part" ? [event.message_part] : []))
    .map(({ part }) => part.result_delta ?? "")
    .join("");

export { Follower };
