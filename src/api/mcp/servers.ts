// The MCP servers that an organization offers to its chats: everybody there sees those that are enabled, its administrators see and change
// all (rules MC-8, MC-9). Secrets go in and never come out; a server that moves elsewhere needs them again.
import { Elysia, t } from "elysia";
import { rfc3339 } from "#base/clock.ts";
import { AppError, forbidden, invalidField, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import {
  deleteMcpServer,
  findMcpServer,
  insertMcpServer,
  listMcpServers,
  type McpServerRow,
  updateMcpServer,
} from "#db/models/mcp-servers.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { findLink } from "#db/users/external-auth.ts";
import { mayUpdateOrganization } from "#domain/access.ts";
import { type McpSecrets, openSecrets, sealSecrets } from "#domain/mcp/access.ts";
import { columnsOf, headersOf, secretOf, slugOf } from "#domain/mcp/input.ts";
import { checkReachable } from "#domain/mcp/reachable.ts";
import { organizationAt, organizationPath } from "#domain/organizations/find.ts";
import { CreateMcpServer, McpServerConfig, UpdateMcpServer } from "#schema/mcp-server.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { fails, NoContent } from "../http/responses.ts";

export const tags = ["MCP servers"];
export const serverPath = t.Object({
  organization: organizationPath.properties.organization,
  server: t.String({ format: "uuid", description: "MCP server id." }),
});
const MOST = 200;

/** The server, where the caller may see it. 404. */
export const serverAt = async (
  { store }: Pick<ApiContext, "store">,
  params: { organization: string; server: string },
  caller: UserCaller,
): Promise<McpServerRow> => {
  const { id: organization_id } = await organizationAt(store, params.organization, caller);
  const row = await store.get(findMcpServer({ organization_id, id: params.server.toLowerCase() }));
  if (!row || !(row.enabled || mayUpdateOrganization(caller, organization_id))) throw notFound();
  return row;
};

const told = (
  { id, slug, icon, organization_id }: McpServerRow,
  action: "create" | "write" | "delete",
  change: { before?: McpServerRow; after?: McpServerRow },
  now: number,
) =>
  audited({
    now,
    action,
    resource_type: "mcp_server",
    resource_id: id,
    target: slug,
    icon,
    organization_id,
    ...change,
  });

export const mcpServers = (ctx: ApiContext) => {
  const { store, clock, encryption } = ctx;
  const show = async (row: McpServerRow, { user_id }: UserCaller): Promise<McpServerConfig> => {
    const { sealed_secrets, version: _, oauth2, created_at, updated_at, ...shown } = row;
    const secrets = openSecrets(encryption, row);
    const link =
      row.auth_type === "oauth2" ? await store.get(findLink({ user_id, provider_id: `mcp:${row.id}` })) : undefined;
    return {
      ...shown,
      ...(oauth2 ? { oauth2 } : {}),
      has_secret: sealed_secrets !== "",
      custom_header_names: Object.keys(secrets.custom_headers ?? {}),
      auth_connected: row.auth_type !== "oauth2" || link?.failure === "",
      created_at: rfc3339(created_at),
      updated_at: rfc3339(updated_at),
    };
  };
  const administered = async (params: { organization: string; server: string }, caller: UserCaller) => {
    const row = await serverAt(ctx, params, caller);
    if (!mayUpdateOrganization(caller, row.organization_id)) throw forbidden(ADMINISTRATORS);
    return row;
  };
  return new Elysia()
    .use(callers)
    .get(
      "/:organization/mcp-servers",
      async ({ caller, params }) => {
        const { id: organization_id } = await organizationAt(store, params.organization, caller);
        const rows = await store.all(listMcpServers({ organization_id }));
        const seesAll = mayUpdateOrganization(caller, organization_id);
        return Promise.all(rows.filter(({ enabled }) => enabled || seesAll).map((row) => show(row, caller)));
      },
      {
        user: true,
        params: organizationPath,
        response: { 200: t.Array(McpServerConfig), ...fails(401, 404) },
        detail: { tags, summary: "List MCP servers", description: "By slug. Who administers sees disabled ones, too." },
      },
    )
    .post(
      "/:organization/mcp-servers",
      async ({ caller, params, body, status }) => {
        const { id: organization_id } = await organizationAt(store, params.organization, caller);
        if (!mayUpdateOrganization(caller, organization_id)) throw forbidden(ADMINISTRATORS);
        if ((await store.all(listMcpServers({ organization_id }))).length >= MOST) {
          throw new AppError("conflict", `An organization has at most ${MOST} MCP servers.`);
        }
        const id = uuid();
        const slug = slugOf(body.slug);
        const columns = columnsOf({ ...DEFAULTS, display_name: slug }, body);
        await checkReachable(ctx, columns);
        const now = clock.now();
        const row: McpServerRow = {
          ...{ id, organization_id, slug, ...columns, version: 0, created_at: now, updated_at: now },
          sealed_secrets: sealSecrets(encryption, id, secretsAfter({}, columns.auth_type, body)),
        };
        await store.commit([insertMcpServer(row), told(row, "create", { after: row }, now)]).catch((error) => {
          if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
          throw new AppError("conflict", "There is an MCP server with this slug.");
        });
        return status(201, await show(row, caller));
      },
      {
        user: true,
        params: organizationPath,
        body: CreateMcpServer,
        response: { 201: McpServerConfig, ...fails(400, 401, 403, 404, 409) },
        detail: { tags, summary: "Add an MCP server", description: "Only who administers the organization." },
      },
    )
    .get(
      "/:organization/mcp-servers/:server",
      async ({ caller, params }) => show(await serverAt(ctx, params, caller), caller),
      {
        user: true,
        params: serverPath,
        response: { 200: McpServerConfig, ...fails(400, 401, 404) },
        detail: { tags, summary: "Get an MCP server" },
      },
    )
    .patch(
      "/:organization/mcp-servers/:server",
      async ({ caller, params, body }) => {
        const row = await administered(params, caller);
        const columns = columnsOf(row, body);
        if (columns.url !== row.url || columns.oauth2 !== row.oauth2) await checkReachable(ctx, columns);
        const moved = new URL(columns.url).origin !== new URL(row.url).origin;
        const changesAuth = columns.auth_type !== row.auth_type;
        // What was given to one place never goes to another by a change of the address alone.
        const known = moved || changesAuth ? {} : openSecrets(encryption, row);
        const secrets = secretsAfter(known, columns.auth_type, body);
        const changed: McpServerRow = {
          ...row,
          ...columns,
          sealed_secrets: sealSecrets(encryption, row.id, secrets),
          version: row.version + 1,
          updated_at: clock.now(),
        };
        const { id, ...patch } = changed;
        const forgets = moved || changesAuth || JSON.stringify(columns.oauth2) !== JSON.stringify(row.oauth2);
        const links = { sql: "delete from external_auth_links where provider_id = ?1", rows: [[`mcp:${id}`]] };
        // Sealed anew each time: that they are the same is seen only when they are opened.
        const isSame = JSON.stringify(secrets) === JSON.stringify(openSecrets(encryption, row));
        const after = isSame ? { ...changed, sealed_secrets: row.sealed_secrets } : changed;
        await store
          .commit([
            updateMcpServer(id, patch, { expect: 1 }),
            ...(forgets ? [links] : []),
            told(row, "write", { before: row, after }, changed.updated_at),
          ])
          .catch(goneOr);
        return show(changed, caller);
      },
      {
        user: true,
        params: serverPath,
        body: UpdateMcpServer,
        response: { 200: McpServerConfig, ...fails(400, 401, 403, 404) },
        detail: {
          tags,
          summary: "Change an MCP server",
          description: "Secrets that are not given stay, unless the server moves to another origin or kind of sign-in.",
        },
      },
    )
    .delete(
      "/:organization/mcp-servers/:server",
      async ({ caller, params, set }) => {
        const row = await administered(params, caller);
        const entry = told(row, "delete", { before: row }, clock.now());
        await store.commit([...deleteMcpServer(row.id), entry]).catch(goneOr);
        set.status = 204;
      },
      {
        user: true,
        params: serverPath,
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: { tags, summary: "Delete an MCP server", description: "With the sign-ins of everybody there." },
      },
    );
};

const ADMINISTRATORS = "Only who administers the organization may do this.";

const DEFAULTS = {
  ...{ description: "", icon: "", url: "", transport: "streamable_http", auth_type: "none" },
  ...{ api_key_header: "Authorization", oauth2: null, tool_allow_list: [], tool_deny_list: [] },
  ...{ availability: "default_off", enabled: true, model_intent: false, allow_in_plan_mode: false },
} as const satisfies Partial<Record<keyof McpServerRow, unknown>> as unknown as McpServerRow;

const goneOr = (error: unknown): never => {
  if (error instanceof CommitError && error.reason === "stale") throw notFound();
  throw error;
};

/** The secrets that this kind of sign-in has; 400 when the one it needs is missing. */
const secretsAfter = (
  before: McpSecrets,
  auth_type: McpServerRow["auth_type"],
  { api_key, custom_headers, oauth2_client_secret }: UpdateMcpServer,
): McpSecrets => {
  if (auth_type === "api_key") {
    const key = api_key === undefined ? before.api_key : secretOf("api_key", api_key);
    if (!key) throw invalidField("api_key", "is required");
    return { api_key: key };
  }
  if (auth_type === "custom_headers") {
    return { custom_headers: custom_headers ? headersOf(custom_headers) : (before.custom_headers ?? {}) };
  }
  if (auth_type === "oauth2") {
    const secret =
      oauth2_client_secret === undefined
        ? before.client_secret
        : secretOf("oauth2_client_secret", oauth2_client_secret);
    return secret ? { client_secret: secret } : {};
  }
  return {};
};
