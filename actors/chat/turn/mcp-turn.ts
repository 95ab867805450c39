// Adds MCP tools to a turn's attempt, and the ID of the organization's server to their calls and results (facts/chats 3.2, 3.5).
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { isServerTool } from "#src/tools/registry.ts";
import type { StartedAttempt } from "../messages.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import { offerAgentChoice } from "./agent-choice.ts";
import type { TurnDeps } from "./deps.ts";
import type { ChatMcp, McpOffer } from "./mcp.ts";
import { EMPTY_OFFER } from "./mcp.ts";
import { toToolScope } from "./offer.ts";

/**
 * Returns the attempt with the MCP tools after its other tools, and with a parameter for the workspace agent if there are several. Returns
 * undefined once the turn is over.
 */
export const addMcpTools = async (
  { clock, store, mcp }: Pick<TurnDeps, "clock" | "store" | "mcp">,
  chat_id: string,
  attempt: StartedAttempt,
  signal: AbortSignal,
): Promise<{ readonly attempt: StartedAttempt; readonly offer: McpOffer } | undefined> => {
  const offer = await retryUntilAnswered(clock, signal, () => loadOffer(mcp, chat_id, attempt, signal));
  if (offer === "stale") return undefined;
  const withAgentChoice = await retryUntilAnswered(clock, signal, () => offerAgentChoice(store, attempt));
  if (withAgentChoice === "stale") return undefined;
  const mcpTools = [...offer.values()].map(({ definition }) => definition);
  return { attempt: { ...withAgentChoice, tools: [...withAgentChoice.tools, ...mcpTools] }, offer };
};

/** Makes no request if the attempt only runs Slipway's own tools. Omits MCP tools with the name of another tool of the chat (rule MC-2). */
const loadOffer = async (
  mcp: ChatMcp,
  chat_id: string,
  { chat, mcp_server_ids, calls, tools }: StartedAttempt,
  signal: AbortSignal,
): Promise<McpOffer> => {
  if (calls.length > 0 && calls.every(({ tool_name }) => isServerTool(tool_name))) return EMPTY_OFFER;
  const offer = await mcp.loadOffer({ ...chat, chat_id, mcp_server_ids }, toToolScope(chat_id, chat), signal);
  const taken = new Set(tools.map(({ name }) => name));
  return new Map([...offer].filter(([name]) => !taken.has(name)));
};

/** Returns the field that names the server of this tool; empty if no server of the organization has the tool. */
export const toServerField = (offer: McpOffer, tool_name: string): { mcp_server_config_id?: string } => {
  const id = offer.get(tool_name)?.server_id;
  return id ? { mcp_server_config_id: id } : {};
};

/** Adds the server of a call's tool to the call. */
export const withServer = (part: MessagePart, offer: McpOffer): MessagePart => {
  const server = part.type === "tool-call" ? toServerField(offer, part.tool_name ?? "") : {};
  return server.mcp_server_config_id === undefined ? part : { ...part, ...server };
};
