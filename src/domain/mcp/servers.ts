// Finds, adds, changes and deletes the MCP servers an organization offers to its chats (rules MC-8, MC-9). Secrets can be set but never
// read, and must be entered again when a server's URL changes.
import { AppError, forbidden, invalidField, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Outbound } from "#base/outbound.ts";
import { CommitError } from "#db/engine/store.ts";
import {
  deleteMcpServer,
  findMcpServer,
  insertMcpServer,
  listMcpServers,
  type McpServerRow,
  updateMcpServer,
} from "#db/models/mcp-servers.ts";
import { type AuditedChange, insertAudit } from "#db/reports/audit/audit.ts";
import { deleteLink, deleteLinksAt } from "#db/users/external-auth.ts";
import type { CreateMcpServer, UpdateMcpServer } from "#schema/chats/mcp-server.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canUpdateOrganization } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { loadOrganization } from "../organizations/find.ts";
import { type McpSecrets, openSecrets, sealSecrets, toProviderId } from "./access.ts";
import { parseHeaders, parseSecret, parseSlug, toColumns } from "./input.ts";

const MAX_SERVERS = 200;
const ADMINISTRATORS_ONLY = "Only administrators of the organization can do this.";

type ServerPath = { readonly organization: string; readonly mcp_server: string };

/** Returns the server if the caller can see it: all members see the enabled ones. Rejects with 404. */
export const findServer = async (
  { store }: Pick<DomainContext, "store">,
  { organization, mcp_server }: ServerPath,
  caller: UserCaller,
): Promise<McpServerRow> => {
  const { id: organization_id } = await loadOrganization(store, organization, caller);
  const row = await store.get(findMcpServer({ organization_id, id: mcp_server.toLowerCase() }));
  if (!row || !(row.enabled || canUpdateOrganization(caller, organization_id))) throw notFound();
  return row;
};

/** Returns the server if the caller can change it. Rejects with 403 or 404. */
export const findAdministeredServer = async (
  ctx: DomainContext,
  path: ServerPath,
  caller: UserCaller,
): Promise<McpServerRow> => {
  const row = await findServer(ctx, path, caller);
  if (!canUpdateOrganization(caller, row.organization_id)) throw forbidden(ADMINISTRATORS_ONLY);
  return row;
};

/** Rejects with 400, 403, or 409 for a slug that is taken and when there are too many. */
export const addServer = async (
  ctx: DomainContext,
  organization_id: string,
  caller: UserCaller,
  input: CreateMcpServer,
): Promise<McpServerRow> => {
  const { store, clock, encryption } = ctx;
  if (!canUpdateOrganization(caller, organization_id)) throw forbidden(ADMINISTRATORS_ONLY);
  if ((await store.all(listMcpServers({ organization_id }))).length >= MAX_SERVERS) {
    throw new AppError("conflict", `An organization has at most ${MAX_SERVERS} MCP servers.`);
  }
  const id = uuid();
  const slug = parseSlug(input.slug);
  const columns = toColumns({ ...DEFAULTS, display_name: slug }, input);
  await checkReachable(ctx, columns);
  const now = clock.now();
  const row: McpServerRow = {
    ...columns,
    id,
    organization_id,
    slug,
    version: 0,
    created_at: now,
    updated_at: now,
    sealed_secrets: sealSecrets(encryption, id, updateSecrets({}, columns.auth_type, input)),
  };
  await store
    .commit([insertMcpServer(row), writeAuditEntry(row, { action: "create", after: row, now })])
    .catch((error) => {
      if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
      throw new AppError("conflict", "There is an MCP server with this slug.");
    });
  return row;
};

/**
 * Omitted secrets are kept only while the server's origin, its kind of sign-in, and the client and URLs of that sign-in stay the same, so
 * that none goes to a place it was not entered for. Rejects with 400, or 404 when the server no longer exists.
 */
export const changeServer = async (
  ctx: DomainContext,
  row: McpServerRow,
  input: UpdateMcpServer,
): Promise<McpServerRow> => {
  const { store, clock, encryption } = ctx;
  const columns = toColumns(row, input);
  if (columns.url !== row.url || columns.oauth2 !== row.oauth2) await checkReachable(ctx, columns);
  const isMoved = new URL(columns.url).origin !== new URL(row.url).origin;
  const changesAuth = columns.auth_type !== row.auth_type;
  const keptSecrets =
    isMoved || changesAuth || changesSignIn(row.oauth2, columns.oauth2) ? {} : openSecrets(encryption, row);
  const secrets = updateSecrets(keptSecrets, columns.auth_type, input);
  const changed: McpServerRow = {
    ...row,
    ...columns,
    sealed_secrets: sealSecrets(encryption, row.id, secrets),
    version: row.version + 1,
    updated_at: clock.now(),
  };
  const { id, ...patch } = changed;
  const dropsLinks = isMoved || changesAuth || JSON.stringify(columns.oauth2) !== JSON.stringify(row.oauth2);
  // Each encryption differs, so secrets can only be compared decrypted.
  const isSame = JSON.stringify(secrets) === JSON.stringify(openSecrets(encryption, row));
  const after = isSame ? { ...changed, sealed_secrets: row.sealed_secrets } : changed;
  await store
    .commit([
      updateMcpServer(id, patch, { expect: 1 }),
      ...(dropsLinks ? [deleteLinksAt(toProviderId(row))] : []),
      writeAuditEntry(row, { action: "write", before: row, after, now: changed.updated_at }),
    ])
    .catch(rethrowAsNotFound);
  return changed;
};

/** Returns whether the client secret would be sent elsewhere or belong to another client. One origin can have several tenants. */
const changesSignIn = (before: McpServerRow["oauth2"], after: McpServerRow["oauth2"]): boolean =>
  before?.client_id !== after?.client_id ||
  before?.auth_url !== after?.auth_url ||
  before?.token_url !== after?.token_url;

/** Deletes the server and all users' sign-ins there. Rejects with 404 when it no longer exists. */
export const removeServer = async ({ store, clock }: DomainContext, row: McpServerRow): Promise<void> => {
  const entry = writeAuditEntry(row, { action: "delete", before: row, now: clock.now() });
  await store.commit([...deleteMcpServer(row.id), entry]).catch(rethrowAsNotFound);
};

/** Deletes the caller's own sign-in there. Rejects with 404 when none exists. */
export const signOutOfServer = async (
  { store, clock }: DomainContext,
  row: McpServerRow,
  { user_id }: UserCaller,
): Promise<void> => {
  const before = { user_id, provider_id: toProviderId(row) };
  const entry = insertAudit({
    now: clock.now(),
    action: "delete",
    resource_type: "external_auth_link",
    resource_id: user_id,
    target: before.provider_id,
    before,
  });
  await store.commit([deleteLink(before), entry]).catch(rethrowAsNotFound);
};

const DEFAULTS = {
  description: "",
  icon: "",
  url: "",
  transport: "streamable_http",
  auth_type: "none",
  api_key_header: "Authorization",
  oauth2: null,
  tool_allow_list: [],
  tool_deny_list: [],
  availability: "default_off",
  enabled: true,
  model_intent: false,
  allow_in_plan_mode: false,
} as const satisfies Partial<Record<keyof McpServerRow, unknown>> as unknown as McpServerRow;

const rethrowAsNotFound = (error: unknown): never => {
  if (error instanceof CommitError && error.reason === "stale") throw notFound();
  throw error;
};

const writeAuditEntry = ({ id, slug, icon, organization_id }: McpServerRow, change: AuditedChange) =>
  insertAudit({
    ...change,
    resource_type: "mcp_server",
    resource_id: id,
    target: slug,
    icon,
    organization_id,
  });

/** Returns the secrets that this kind of sign-in uses. Rejects with 400 when a required one is missing. */
const updateSecrets = (
  before: McpSecrets,
  auth_type: McpServerRow["auth_type"],
  { api_key, custom_headers, oauth2_client_secret }: UpdateMcpServer,
): McpSecrets => {
  if (auth_type === "api_key") {
    const key = api_key === undefined ? before.api_key : parseSecret("api_key", api_key);
    if (!key) throw invalidField("api_key", "is required");
    return { api_key: key };
  }
  if (auth_type === "custom_headers") {
    return { custom_headers: custom_headers ? parseHeaders(custom_headers) : (before.custom_headers ?? {}) };
  }
  if (auth_type === "oauth2") {
    const secret =
      oauth2_client_secret === undefined
        ? before.client_secret
        : parseSecret("oauth2_client_secret", oauth2_client_secret);
    return secret ? { client_secret: secret } : {};
  }
  return {};
};

type Deps = { readonly mcpOutbound: Outbound; readonly outbound: Outbound };

/** Rejects with 400 and names the field. A hostname that does not resolve now is accepted, because it may later. */
const checkReachable = async (
  { mcpOutbound, outbound }: Deps,
  { url, oauth2 }: Pick<McpServerRow, "url" | "oauth2">,
): Promise<void> => {
  const refusal = await mcpOutbound.findRefusal(new URL(url));
  if (refusal !== undefined) throw invalidField("url", refusal);
  const tokenRefusal = oauth2 && (await outbound.findRefusal(new URL(oauth2.token_url)));
  if (tokenRefusal) throw invalidField("oauth2.token_url", tokenRefusal);
};
