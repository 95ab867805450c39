// Answers a coding agent's MCP requests: offers the tools of the organization's and the workspace's MCP servers that the chat may call.
// Slipway runs the calls itself, so that rules, approvals and hooks apply first, and no server's secret reaches the workspace.
import { uuid } from "#base/ids.ts";
import { findCostProblem } from "#base/json/cost.ts";
import { parseJson } from "#base/json/read.ts";
import { log } from "#base/log.ts";
import { AnswerMemory } from "#base/system/answer-memory.ts";
import { VERSION } from "#base/version.ts";
import { answerMessage } from "#src/mcp/offered-server.ts";
import { SecretMask } from "#src/tools/mask.ts";
import type { ToolResult } from "#src/tools/result.ts";
import { runTool, type ToolAnswer } from "#src/tools/run.ts";
import type { StartedAttempt } from "../messages.ts";
import type { TurnDeps } from "../turn/deps.ts";
import { EMPTY_OFFER, type McpOffer } from "../turn/mcp.ts";
import { toToolScope } from "../turn/offer.ts";
import { WorkspaceAgent } from "../turn/tool-agent.ts";
import type { ServerCall } from "./events.ts";

type Deps = Pick<
  TurnDeps,
  "store" | "clock" | "agentHttp" | "toolServices" | "skills" | "memory" | "subagents" | "mcp"
>;
type Attempt = Pick<StartedAttempt, "chat" | "chat_key" | "mcp_server_ids" | "context_limit">;

/** Runs a call if the chat's rules or a person approve it. */
type RunIfApproved = (call: ServerCall, run: (signal: AbortSignal) => Promise<ToolAnswer>) => Promise<ToolAnswer>;

export class AgentTools {
  readonly #deps: Deps;
  readonly #chat_id: string;
  #attempt: Attempt;
  #offer: McpOffer = EMPTY_OFFER;

  constructor(deps: Deps, chat_id: string, attempt: Attempt) {
    this.#deps = deps;
    this.#chat_id = chat_id;
    this.#attempt = attempt;
  }

  /** Makes later calls use the settings of this attempt. */
  begin(attempt: Attempt): void {
    this.#attempt = attempt;
  }

  /** Answers a JSON-RPC message of the agent's MCP client. */
  async answer(message: string, runIfApproved: RunIfApproved): Promise<string> {
    const tools = {
      list: async () => [...(await this.#loadOffer()).values()].map(({ definition }) => definition),
      call: async (name: string, args: unknown) => {
        const { result, is_error } = await this.#runTool(name, args, runIfApproved);
        return { text: toText(result), is_error };
      },
    };
    if (findCostProblem(new TextEncoder().encode(message)) !== undefined) return TOO_LARGE_ERROR;
    try {
      return await answerMessage(tools, VERSION, message);
    } catch (error) {
      log("chats").warn("cannot answer an MCP request of a coding agent: {error}", { error });
      const { id = null } = parseJson(message) as { id?: unknown };
      return JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_603, message: "Slipway could not answer." } });
    }
  }

  /** Returns whether the chat has any MCP tools. */
  async hasTools(signal: AbortSignal): Promise<boolean> {
    return (await this.#loadOffer(signal)).size > 0;
  }

  async #loadOffer(signal = new AbortController().signal): Promise<McpOffer> {
    const { chat, mcp_server_ids } = this.#attempt;
    const scope = { ...chat, chat_id: this.#chat_id, mcp_server_ids };
    this.#offer = await this.#deps.mcp.loadOffer(scope, toToolScope(this.#chat_id, chat), signal);
    return this.#offer;
  }

  async #runTool(tool_name: string, args: unknown, runIfApproved: RunIfApproved): Promise<ToolAnswer> {
    const offered = this.#offer.get(tool_name) ?? (await this.#loadOffer()).get(tool_name);
    if (!offered) return { result: { error: `There is no tool "${tool_name}".` }, is_error: true };
    const { chat, chat_key, context_limit } = this.#attempt;
    const run_id = uuid();
    const call = { tool_call_id: `mcp-${run_id}`, tool_name, args: args as Record<string, unknown> };
    return runIfApproved(call, async (signal) => {
      const scope = { ...chat, chat_id: this.#chat_id, run_id };
      const services = this.#deps.toolServices(scope);
      const { clock, memory: share } = this.#deps;
      using memory = new AnswerMemory({ clock, share, holder: chat.owner_id, signal });
      const context = {
        clock,
        memory,
        run_id,
        context_limit,
        services,
        again: false,
        mask: new SecretMask(await services.loadSecrets()),
        agent: new WorkspaceAgent(this.#deps, scope, false, { memory }),
        skills: this.#deps.skills({ chat_key, owner_id: chat.owner_id }),
        agents: this.#deps.subagents({
          chat_id: this.#chat_id,
          run_id,
          // Required by the type, but MCP tools never start sub-chats.
          call: { message_id: 0, tool_call_id: call.tool_call_id },
          failed: () => {},
        }),
        reset: () => {},
        write: () => {},
      };
      return await runTool(toToolScope(this.#chat_id, chat), call, context, signal, offered.tool);
    });
  }
}

/** Returns the output or error as text, followed by the other fields as JSON. */
const toText = (result: ToolResult): string => {
  const { output, error, ...more } = result as { output?: unknown; error?: unknown };
  const text = output ?? error;
  if (typeof text !== "string") return JSON.stringify(result);
  return Object.keys(more).length === 0 ? text : `${text}\n${JSON.stringify(more)}`;
};

/** The request was not parsed, so its ID is unknown. */
const TOO_LARGE_ERROR = JSON.stringify({
  jsonrpc: "2.0",
  id: null,
  error: { code: -32_600, message: "The request has too many values." },
});
