// Tests an MCP server and lists its tools, so that the person who adds it sees immediately whether it responds. Runs as the caller, over a
// temporary connection whose timeouts apply (rule MC-4).
import { AppError } from "#base/errors.ts";
import type { McpServerRow } from "#db/models/mcp-servers.ts";
import type { TriedMcpServer } from "#schema/chats/mcp-server.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { McpError } from "#src/mcp/failure.ts";
import { hideHeaders } from "#src/mcp/hidden.ts";
import { openHttp } from "#src/mcp/http.ts";
import { isAllowed } from "#src/mcp/names.ts";
import type { DomainContext } from "../context.ts";
import { makeMcpAccess } from "./access.ts";

type Deps = Pick<DomainContext, "clock" | "encryption" | "links" | "mcpOutbound">;

/** Returns its tools and which of them chats can use, or the reason why it does not respond. */
export const tryServer = async (
  deps: Deps,
  row: McpServerRow,
  { user_id }: UserCaller,
  stop: AbortSignal,
): Promise<TriedMcpServer> => {
  const started = deps.clock.monotonic();
  const getElapsedMs = (): number => Math.round(deps.clock.monotonic() - started);
  try {
    const target = await makeMcpAccess(deps)(row, user_id);
    if (!target)
      return { works: false, problem: "Sign in there first: the server is asked in your name.", ...NO_RESULT };
    const fetch = (url: string | URL, init?: RequestInit) => deps.mcpOutbound.open(new URL(url), init);
    const { url, kind, headers } = target;
    const connection = await openHttp(
      deps.clock,
      { url, kind, headers, fetch },
      { signal: stop, hide: hideHeaders(headers) },
    );
    const tools = connection.tools.map(({ name, description }) => ({
      name,
      description: description.slice(0, MAX_DESCRIPTION_CHARS),
      offered: isAllowed(name, row.tool_allow_list, row.tool_deny_list),
    }));
    void connection.close();
    return { works: true, tools, took_ms: getElapsedMs() };
  } catch (error) {
    stop.throwIfAborted();
    if (!(error instanceof McpError || error instanceof AppError)) throw error;
    return { works: false, problem: error.message, tools: [], took_ms: getElapsedMs() };
  }
};

const NO_RESULT = { tools: [], took_ms: 0 };
const MAX_DESCRIPTION_CHARS = 1_024;
