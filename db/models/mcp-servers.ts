// MCP servers that organizations offer to their chats. There are few, so lists are read completely.
import { and, asc, sql } from "drizzle-orm";
import {
  build,
  deleteBy,
  eqParam,
  findBy,
  insertInto,
  query,
  type Statement,
  statement,
  updateBy,
} from "../engine/sql.ts";
import { mcp_servers } from "../schema/mcp.ts";

export type McpServerRow = typeof mcp_servers.$inferSelect;

/** The servers of an organization, ordered by slug. Parameters: {organization_id}. */
export const listMcpServers = query(
  build.select().from(mcp_servers).where(eqParam(mcp_servers.organization_id)).orderBy(asc(mcp_servers.slug)),
);

/** One server of an organization. Parameters: {organization_id, id}. */
export const findMcpServer = findBy(mcp_servers, mcp_servers.organization_id, mcp_servers.id);

export const insertMcpServer = insertInto(mcp_servers);
export const updateMcpServer = updateBy(mcp_servers, mcp_servers.id);

/** A guard for data from a server: rejects the batch as `stale` when the server's settings have changed since. */
export const guardMcpServer = statement<Pick<McpServerRow, "id" | "version">>(
  build
    .update(mcp_servers)
    .set({ version: sql`${mcp_servers.version}` })
    .where(and(eqParam(mcp_servers.id), eqParam(mcp_servers.version))),
  { expect: 1 },
);

/** Deletes all users' sign-ins to the MCP servers of an organization that is deleted. Must precede the deletion of the servers. */
export const deleteMcpLinksOf = (organization_id: string): Statement => ({
  touches: [],
  sql: `delete from external_auth_links where provider_id in
    (select 'mcp:' || id from mcp_servers where organization_id = ?1)`,
  rows: [[organization_id]],
});

const deleteRow = deleteBy(mcp_servers, mcp_servers.id);
/** Deletes a server with the tokens of all users who have signed in to it. */
export const deleteMcpServer = (id: string): Statement[] => [
  { ...deleteRow(id), expect: 1 },
  { touches: [], sql: "delete from external_auth_links where provider_id = ?1", rows: [[`mcp:${id}`]] },
];
