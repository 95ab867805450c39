// The MCP servers an organization offers to its chats. Members see the enabled ones; its administrators see and change all (rules MC-8,
// MC-9). Secrets can be set but never read, and must be entered again when a server's URL changes.
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { listMcpServers, type McpServerRow } from "#db/models/mcp-servers.ts";
import { findLink } from "#db/users/external-auth.ts";
import { canUpdateOrganization } from "#domain/access.ts";
import { openSecrets, toProviderId } from "#domain/mcp/access.ts";
import { addServer, changeServer, findAdministeredServer, findServer, removeServer } from "#domain/mcp/servers.ts";
import { tryServer } from "#domain/mcp/try-server.ts";
import { loadOrganization, organizationPath } from "#domain/organizations/find.ts";
import { CreateMcpServer, McpServerConfig, TriedMcpServer, UpdateMcpServer } from "#schema/chats/mcp-server.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const tags = ["MCP servers"];
export const serverPath = t.Object({
  organization: organizationPath.properties.organization,
  mcp_server: t.String({ format: "uuid", description: "The ID of the MCP server." }),
});

export const mcpServers = (ctx: ApiContext) => {
  const { store, encryption } = ctx;
  const presentServer = async (row: McpServerRow, { user_id }: UserCaller): Promise<McpServerConfig> => {
    const { sealed_secrets, version: _, oauth2, created_at, updated_at, ...fields } = row;
    const secrets = openSecrets(encryption, row);
    const link =
      row.auth_type === "oauth2" ? await store.get(findLink({ user_id, provider_id: toProviderId(row) })) : undefined;
    return {
      ...fields,
      ...(oauth2 ? { oauth2 } : {}),
      has_secret: sealed_secrets !== "",
      custom_header_names: Object.keys(secrets.custom_headers ?? {}),
      auth_connected: row.auth_type !== "oauth2" || link?.failure === "",
      created_at: toRfc3339(created_at),
      updated_at: toRfc3339(updated_at),
    };
  };
  return routes()
    .use(callers)
    .get(
      "/:organization/mcp-servers",
      async ({ caller, params }) => {
        const { id: organization_id } = await loadOrganization(store, params.organization, caller);
        const rows = await store.all(listMcpServers({ organization_id }));
        const seesAll = canUpdateOrganization(caller, organization_id);
        return Promise.all(rows.filter(({ enabled }) => enabled || seesAll).map((row) => presentServer(row, caller)));
      },
      {
        user: true,
        params: organizationPath,
        response: { 200: t.Array(McpServerConfig), ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "listMcpServers",
          summary: "List MCP servers",
          description: "Returns servers, sorted by slug. Administrators also see disabled servers.",
          access: "members",
          scope: "mcp_server:read",
        }),
      },
    )
    .post(
      "/:organization/mcp-servers",
      async ({ caller, params, body, status }) => {
        const { id: organization_id } = await loadOrganization(store, params.organization, caller);
        return status(201, await presentServer(await addServer(ctx, organization_id, caller, body), caller));
      },
      {
        user: true,
        params: organizationPath,
        body: CreateMcpServer,
        response: { 201: McpServerConfig, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "createMcpServer",
          summary: "Create an MCP server",
          description: "Available to administrators of the organization.",
          example: { slug: "docs", url: "https://mcp.example.com/mcp", display_name: "Docs" },
          access: "organization_admins",
          outlivesGrant: true,
          scope: "mcp_server:create",
        }),
      },
    )
    .get(
      "/:organization/mcp-servers/:mcp_server",
      async ({ caller, params }) => presentServer(await findServer(ctx, params, caller), caller),
      {
        user: true,
        params: serverPath,
        response: { 200: McpServerConfig, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getMcpServer",
          summary: "Get an MCP server",
          access: "members",
          scope: "mcp_server:read",
        }),
      },
    )
    .patch(
      "/:organization/mcp-servers/:mcp_server",
      async ({ caller, params, body }) => {
        const row = await findAdministeredServer(ctx, params, caller);
        return presentServer(await changeServer(ctx, row, body), caller);
      },
      {
        user: true,
        params: serverPath,
        body: UpdateMcpServer,
        response: { 200: McpServerConfig, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "updateMcpServer",
          summary: "Update an MCP server",
          description:
            "Omitted secrets are kept, unless the server's origin, its authentication type, or the client or a URL of its sign-in changes.",
          audit: target.writes(target.mcpServer),
          example: { display_name: "Issues" },
          access: "organization_admins",
          outlivesGrant: true,
          scope: "mcp_server:update",
        }),
      },
    )
    .post(
      "/:organization/mcp-servers/:mcp_server/try",
      async ({ caller, params, request }) =>
        tryServer(ctx, await findAdministeredServer(ctx, params, caller), caller, request.signal),
      {
        user: true,
        params: serverPath,
        response: { 200: TriedMcpServer, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "tryMcpServer",
          summary: "Test an MCP server",
          description: "Connects to the server on behalf of the caller and lists its tools. Takes at most 30 seconds.",
          access: "organization_admins",
          scope: "mcp_server:update",
        }),
      },
    )
    .delete(
      "/:organization/mcp-servers/:mcp_server",
      async ({ caller, params, set }) => {
        await removeServer(ctx, await findAdministeredServer(ctx, params, caller));
        set.status = 204;
      },
      {
        user: true,
        params: serverPath,
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteMcpServer",
          summary: "Delete an MCP server",
          description: "Deletes the server and all users' sign-ins to it.",
          audit: target.deletes(target.mcpServer),
          access: "organization_admins",
          scope: "mcp_server:delete",
          outlivesGrant: true,
        }),
      },
    );
};
