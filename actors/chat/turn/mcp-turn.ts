// Adds MCP tools to a turn, after its own and the client's. Calls and results name the organization's server they belong to (facts/chats
// 3.2, 3.5). Pure except for the requests.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { isServerTool } from "#src/tools/registry.ts";
import type { StartedAttempt } from "../messages.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import { offerAgentChoice } from "./agent-choice.ts";
import type { TurnDeps } from "./deps.ts";
import type { ChatMcp, McpOffer } from "./mcp.ts";
import { EMPTY_OFFER } from "./mcp.ts";
import { toToolScope } from "./offer.ts";

/** Returns the attempt with a parameter for the agent, if there are several, and the MCP tools; undefined once the signal has fired. */
export const addMcpTools = async (
  { clock, store, mcp }: Pick<TurnDeps, "clock" | "store" | "mcp">,
  chat_id: string,
  attempt: StartedAttempt,
  signal: AbortSignal,
): Promise<{ readonly attempt: StartedAttempt; readonly offer: McpOffer } | undefined> => {
  const offer = await retryUntilAnswered(clock, signal, () => loadOffer(mcp, chat_id, attempt, signal));
  if (offer === "stale") return undefined;
  const chosen = await retryUntilAnswered(clock, signal, () => offerAgentChoice(store, attempt));
  return chosen === "stale" ? undefined : { attempt: withMcpTools(chosen, offer), offer };
};

/** Makes no request if the attempt only runs Slipway's own tools. Skips MCP tools with the name of another tool of the chat (MC-2). */
const loadOffer = async (
  mcp: ChatMcp,
  chat_id: string,
  { about, mcp_server_ids, calls, tools }: StartedAttempt,
  signal: AbortSignal,
): Promise<McpOffer> => {
  if (calls.length > 0 && calls.every(({ tool_name }) => isServerTool(tool_name))) return EMPTY_OFFER;
  const offer = await mcp.offer({ ...about, chat_id, mcp_server_ids }, toToolScope(chat_id, about), signal);
  const taken = new Set(tools.map(({ name }) => name));
  return new Map([...offer].filter(([name]) => !taken.has(name)));
};

/** Returns the attempt with the MCP tools after its own. */
const withMcpTools = (attempt: StartedAttempt, offer: McpOffer): StartedAttempt =>
  offer.size === 0
    ? attempt
    : { ...attempt, tools: [...attempt.tools, ...[...offer.values()].map(({ definition }) => definition)] };

/** Returns the server field for a call or result of this tool. */
export const toServerField = (offer: McpOffer, tool_name: string): { mcp_server_config_id?: string } => {
  const id = offer.get(tool_name)?.server_id;
  return id ? { mcp_server_config_id: id } : {};
};

/** Adds the server to a call. */
export const withServer = (part: MessagePart, offer: McpOffer): MessagePart =>
  part.type === "tool-call" && part.tool_name !== undefined && offer.size > 0
    ? { ...part, ...toServerField(offer, part.tool_name) }
    : part;
