// The MCP servers a chat uses (facts/chats 4.3, 4.7, rule MC-1). Forced servers are always included and need not be chosen.
import { invalid } from "#base/errors.ts";
import { listMcpServers } from "#db/models/mcp-servers.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "store">;

/**
 * Returns the chosen servers without duplicates; undefined when the request names none. `known` are the chat's current servers. Rejects
 * with 400 and names the servers that cannot be used.
 */
export const chooseServers = async (
  { store }: Deps,
  organization_id: string,
  ids: readonly string[] | null | undefined,
  known: readonly string[] = [],
): Promise<string[] | undefined> => {
  if (!ids) return undefined;
  const chosen = [...new Set(ids.map((id) => id.toLowerCase()))];
  const rows = await store.all(listMcpServers({ organization_id }));
  const usable = new Set([...known, ...rows.filter(({ enabled }) => enabled).map(({ id }) => id)]);
  const unusable = chosen.filter((id) => !usable.has(id));
  if (unusable.length === 0) return chosen;
  const detail = `not enabled in this organization: ${unusable.join(", ")}`;
  throw invalid("Validation failed.", [{ field: "mcp_server_ids", detail }]);
};

/** Returns the servers of a new chat whose request names none. */
export const listDefaultServers = async ({ store }: Deps, organization_id: string): Promise<string[]> => {
  const rows = await store.all(listMcpServers({ organization_id }));
  return rows.filter(({ enabled, availability }) => enabled && availability === "default_on").map(({ id }) => id);
};
