// Lists the MCP tools that a chat may call: the tools of its workspace, and of the organization's servers that are selected in the chat or
// forced on (facts/chats 5.2, 5.5, rules MC-1 to MC-6). A server that fails is skipped with a warning.
import { type Static, Type as t } from "@sinclair/typebox";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { findSnapshot, findWorkspaceContext } from "#db/chats/context.ts";
import type { Store } from "#db/engine/store.ts";
import { listMcpServers, type McpServerRow } from "#db/models/mcp-servers.ts";
import type { McpToolResult } from "#schema/agents/agent-context.ts";
import type { StoredTool } from "#schema/chats/chat-context.ts";
import type { ToolDefinition } from "#src/llm/model.ts";
import type { CallLimits } from "#src/mcp/connection.ts";
import { type McpAnswer, type McpFile, SUPPORTED_FILE_TYPES } from "#src/mcp/content.ts";
import { McpError } from "#src/mcp/failure.ts";
import { isAllowed, toOfferedName } from "#src/mcp/names.ts";
import type { McpPool, McpTarget } from "#src/mcp/pool.ts";
import type { ChatToolContext } from "#src/tools/available.ts";
import { maskFile } from "#src/tools/files/attach-file.ts";
import { findToolUse } from "#src/tools/registry.ts";
import type { ToolResult } from "#src/tools/result.ts";
import { defineTool, type Tool, type ToolContext, ToolError } from "#src/tools/tool.ts";
import type { ChatWarnings } from "./warnings.ts";

/** Returns a person's access to a server; undefined if the person has not signed in to the server. */
export type McpAccess = (server: McpServerRow, user_id: string) => Promise<McpTarget | undefined>;

type McpDeps = {
  readonly store: Pick<Store, "get" | "all">;
  readonly clock: Clock;
  readonly pool: McpPool;
  readonly access: McpAccess;
  readonly warnings: ChatWarnings;
  readonly limits: CallLimits;
};

type McpScope = {
  readonly chat_id: string;
  readonly owner_id: string;
  readonly organization_id: string;
  readonly workspace_id: string | null;
  readonly mcp_server_ids: readonly string[];
};

/** `problem` says why the server has no tools; empty if it has. */
type WorkspaceServer = { readonly server: string; readonly tools: readonly StoredTool[]; readonly problem: string };

/** `server_id` is null for a tool of the workspace. */
type McpTool = { readonly definition: ToolDefinition; readonly tool: Tool; readonly server_id: string | null };
/** MCP tools by the names under which the model sees them. */
export type McpOffer = ReadonlyMap<string, McpTool>;
export const EMPTY_OFFER: McpOffer = new Map();

/** After this delay, followers see which servers the turn waits for. */
const NOTICE_DELAY_MS = 1_000;
/** Maximum MCP tools of a chat. */
const MAX_TOOLS = 300;
/** Maximum entries of the cache of workspace servers. */
const MAX_CACHED = 64;

export class ChatMcp {
  readonly #deps: McpDeps;
  /** The servers of workspaces, by context snapshot. */
  readonly #workspaceServers = new Map<string, readonly WorkspaceServer[]>();

  constructor(deps: McpDeps) {
    this.#deps = deps;
  }

  /** Returns the chat's MCP tools. Of tools with the same name, only the first is offered. */
  async loadOffer(scope: McpScope, toolScope: ChatToolContext, signal: AbortSignal): Promise<McpOffer> {
    const warnings: string[] = [];
    const servers = await this.#listServers(scope, toolScope);
    const waiting = new Set(servers);
    const noticeTimer = this.#deps.clock.after(NOTICE_DELAY_MS, () => {
      const notices = [...waiting].map((one) => `The chat waits for the MCP server "${one.display_name}".`);
      this.#deps.warnings.sendOnce(scope.chat_id, "mcp", [...warnings, ...notices]);
    });
    const loadTools = async (server: McpServerRow): Promise<McpTool[]> => {
      try {
        return await this.#loadTools(server, scope.owner_id, signal);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (!(error instanceof McpError || error instanceof AppError)) throw error;
        warnings.push(`The MCP server "${server.display_name}" is not available: ${error.message}`);
        return [];
      } finally {
        waiting.delete(server);
      }
    };
    const serverTools = await Promise.all(servers.map(loadTools)).finally(() => noticeTimer.cancel());
    const workspaceTools =
      findToolUse("workspace_mcp", toolScope) === "yes" ? await this.#listWorkspaceTools(scope, warnings) : [];
    this.#warn(scope.chat_id, warnings);
    const offer = new Map<string, McpTool>();
    for (const tool of [...serverTools.flat(), ...workspaceTools].slice(0, MAX_TOOLS)) {
      if (!offer.has(tool.definition.name)) offer.set(tool.definition.name, tool);
    }
    return offer;
  }

  async #listServers({ organization_id, mcp_server_ids }: McpScope, scope: ChatToolContext): Promise<McpServerRow[]> {
    const use = findToolUse("external_mcp", scope);
    if (use === "no") return [];
    const rows = await this.#deps.store.all(listMcpServers({ organization_id }));
    return rows.filter(
      ({ id, enabled, availability, allow_in_plan_mode }) =>
        enabled &&
        (availability === "force_on" || mcp_server_ids.includes(id)) &&
        (use !== "approved" || allow_in_plan_mode),
    );
  }

  async #loadTools(server: McpServerRow, owner_id: string, signal: AbortSignal): Promise<McpTool[]> {
    const { pool, limits } = this.#deps;
    const connection = await pool.connectInTime(await this.#requireTarget(server, owner_id), signal);
    const tools = await connection.getTools();
    const { id, slug, tool_allow_list, tool_deny_list, model_intent } = server;
    return tools
      .filter(({ name }) => isAllowed(name, tool_allow_list, tool_deny_list))
      .map((one) =>
        toMcpTool(
          { ...one, name: toOfferedName(slug, one.name), server: server.display_name || slug },
          { server_id: id, asksIntent: model_intent },
          (args, { memory }, signal) =>
            pool.call(() => this.#requireTarget(server, owner_id), one.name, args, { signal, limits, memory }),
        ),
      );
  }

  async #requireTarget(server: McpServerRow, owner_id: string): Promise<McpTarget> {
    const target = await this.#deps.access(server, owner_id);
    if (!target) throw new McpError("the owner of the chat must sign in to it first.");
    return target;
  }

  /**
   * Returns the workspace's tools. Omits a tool if its name has the prefix of one of the organization's servers (ignoring case), because
   * rules and approvals for such names are meant for that server, even while it is unreachable or not selected.
   */
  async #listWorkspaceTools(scope: McpScope, warnings: string[]): Promise<McpTool[]> {
    const { organization_id } = scope;
    const rows = await this.#deps.store.all(listMcpServers({ organization_id }));
    const takenPrefixes = rows.map(({ slug }) => toOfferedName(slug, "").toLowerCase());
    const tools = await this.#loadWorkspaceTools(scope, warnings);
    const isTaken = ({ definition: { name } }: McpTool) =>
      takenPrefixes.some((prefix) => name.toLowerCase().startsWith(prefix));
    const hiddenServers = new Set(tools.filter(isTaken).map(({ definition }) => definition.server));
    for (const server of hiddenServers) {
      warnings.push(
        `The MCP server "${server}" of the workspace is not available: your organization has a server of this name.`,
      );
    }
    return tools.filter((tool) => !isTaken(tool));
  }

  /** Returns the tools that the workspace reports now, which may be newer than the chat's pinned context (facts/chats 5.5). */
  async #loadWorkspaceTools({ workspace_id }: McpScope, warnings: string[]): Promise<McpTool[]> {
    const { store, limits } = this.#deps;
    const context = workspace_id === null ? undefined : await store.get(findWorkspaceContext({ workspace_id }));
    if (!context) return [];
    const servers = await this.#readWorkspaceServers(context.snapshot);
    for (const { server, problem } of servers) {
      if (problem !== "") warnings.push(`The MCP server "${server}" of the workspace is not available: ${problem}`);
    }
    return servers.flatMap(({ server, tools }) =>
      tools.map((tool) => {
        const plainName = tool.name.startsWith(`${server}__`) ? tool.name.slice(server.length + 2) : tool.name;
        const offered = { ...tool, name: toOfferedName(server, plainName), server };
        return toMcpTool(offered, { server_id: null, asksIntent: false }, (args, { agent }, signal) =>
          agent.call<McpToolResult>({
            method: "POST",
            path: "/mcp/call-tool",
            json: { server, tool: plainName, arguments: args, ...limits },
            answer_ms: limits.total_ms,
            signal,
          }),
        );
      }),
    );
  }

  async #readWorkspaceServers(snapshot_id: string): Promise<readonly WorkspaceServer[]> {
    const cached = this.#workspaceServers.get(snapshot_id);
    if (cached) return cached;
    const snapshot = await this.#deps.store.get(findSnapshot({ id: snapshot_id }));
    const servers = (snapshot?.resources ?? []).flatMap(({ kind, status, source, tools = [], error }) =>
      kind === "mcp_server" ? [{ server: source, tools, problem: status === "ok" ? "" : error }] : [],
    );
    this.#workspaceServers.set(snapshot_id, servers);
    const [oldest = ""] = this.#workspaceServers.keys();
    if (this.#workspaceServers.size > MAX_CACHED) this.#workspaceServers.delete(oldest);
    return servers;
  }

  #warn(chat_id: string, warnings: readonly string[]): void {
    const previous = this.#deps.warnings.from("mcp", chat_id);
    for (const warning of warnings) {
      if (!previous.includes(warning)) log("chats").warn("chat {chat_id}: {warning}", { chat_id, warning });
    }
    this.#deps.warnings.set("mcp", chat_id, warnings);
  }
}

/** Accepts any object, because the MCP server validates the arguments. */
const ARGUMENTS = t.Object({}, { additionalProperties: true });
const INTENT_ARGUMENT = "model_intent";

type RunMcpTool = (
  args: Record<string, unknown>,
  context: Parameters<Tool["run"]>[0],
  signal: AbortSignal,
) => Promise<McpAnswer>;

/** A tool under its offered name. `server` is the server's display name. */
type OfferedTool = StoredTool & { readonly server: string };
type ToolSource = { readonly server_id: string | null; readonly asksIntent: boolean };

const toMcpTool = (
  { name, description, input_schema, server }: OfferedTool,
  { server_id, asksIntent }: ToolSource,
  call: RunMcpTool,
): McpTool => ({
  server_id,
  definition: { name, description, input_schema: asksIntent ? withIntent(input_schema) : input_schema, server },
  tool: defineTool({
    name,
    description,
    input_schema: ARGUMENTS,
    gives_image: true,
    async run(context, input: Static<typeof ARGUMENTS>, signal): Promise<ToolResult> {
      const { [INTENT_ARGUMENT]: intent, ...rest } = input as Record<string, unknown>;
      const args = asksIntent || intent === undefined ? rest : { ...rest, [INTENT_ARGUMENT]: intent };
      try {
        const { result, is_error, files = [] } = await call(args, context, signal);
        if (!is_error) return withFiles(result, await attachFiles(context, name, files));
        const { error, ...more } = result;
        throw new ToolError(typeof error === "string" ? error : "The tool failed.", more);
      } catch (error) {
        if (error instanceof McpError) throw new ToolError(`The MCP server failed: ${error.message}`);
        throw error;
      }
    },
  }),
});

type AttachedFile = { readonly file_id: string; readonly media_type: string };

/** Stores images and documents as files of the chat. Leaves out other files, and files that contain secrets. */
const attachFiles = async (
  { services, mask }: Pick<ToolContext, "services" | "mask">,
  tool_name: string,
  files: readonly McpFile[],
): Promise<AttachedFile[]> => {
  const stored: AttachedFile[] = [];
  for (const [index, { media_type, data }] of files.entries()) {
    if (!SUPPORTED_FILE_TYPES.includes(media_type)) continue;
    const name = `${tool_name}-${index + 1}.${media_type.split("/")[1]}`;
    const bytes = await maskFile(new Uint8Array(Buffer.from(data, "base64")), mask);
    if (!bytes) continue;
    try {
      stored.push(await services.attachFile(name, bytes, index));
    } catch (error) {
      if (!(error instanceof AppError) || error.kind === "internal") throw error;
      log("chats").debug("cannot store a file of {tool_name}: {error}", { tool_name, error });
    }
  }
  return stored.filter(({ media_type }) => SUPPORTED_FILE_TYPES.includes(media_type));
};

/** Replaces the fields `image` and `files` of a result with the stored files. An MCP server may use these names for other things. */
const withFiles = ({ image: _, files: __, ...result }: ToolResult, files: readonly AttachedFile[]): ToolResult =>
  files.length === 0 ? result : { ...result, files };

/** Adds a parameter in which the model states its intent for people. The server never receives it. */
const withIntent = (schema: unknown): unknown => {
  const { properties = {}, ...rest } = (schema ?? {}) as { properties?: Record<string, unknown> };
  const intent = { type: "string", description: "In a few words, what you want to find out or do with this call." };
  return { type: "object", ...rest, properties: { ...properties, [INTENT_ARGUMENT]: intent } };
};
