// The reviewed table of the authorization matrix: which status each caller gets from each operation (facts/platform 3.8). Read by
// matrix.test.ts; test/RULES.md (SC) says how a row is added. A row is checked against the specification, never against the code.
import type { MakerName } from "./matrix-world.ts";

export type Row = {
  /** One status for each of CALLERS, in their order. */
  readonly is: string;
  /** A JSON body; `{name}` in its texts is one of the town's things. Without it: an example of the required fields. */
  readonly body?: unknown;
  /** A body that is not JSON: its content type. */
  readonly sends?: string;
  /** Path parameters that are not the town's own. */
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** What the call uses up, so that each caller who may has one of its own. */
  readonly fresh?: MakerName;
  /** Why the row is not what one would think. */
  readonly why?: string;
};

// stranger, agent, other agent, foreigner, colleague, ada (whose it is), admin (the site's owner)
const OPEN = "200 200 200 200 200 200 200";
/** No caller that a password makes: only who proves it otherwise. */
const NOBODY = "401 401 401 401 401 401 401";
const EVERY_USER = "401 401 401 200 200 200 200";
/** For members of the organization, be it to read or to be told that it is not theirs to do. */
const MEMBERS = "401 401 401 404 200 200 200";
const LEADS = "401 401 401 404 403 403 200";
/** For the site's owner; others may know that it exists, or not. */
const SITE_LEADS = "401 401 401 403 403 403 200";
const SITE_SECRET = "401 401 401 404 404 404 200";
/** Belongs to ada; there is nothing to see for others but the site's owner. */
const PRIVATE = "401 401 401 404 404 200 200";
/** Each for themselves, the site's owner too. */
const OWN = "401 401 401 404 404 200 403";
/** The same, where ada cannot: it is for people with a password. */
const OWN_FACTOR = "401 401 401 404 404 400 403";
const HAS_NO_PASSWORD = "400: ada has no password";
/** The same, where it takes a socket and a plain request is told so. */
const PRIVATE_SOCKET = "401 401 401 404 404 400 400";
const as = (row: string, status: number): string => row.replaceAll("200", String(status));

const O = "/api/v2/organizations/{organization}";
const U = "/api/v2/users/{user}";
const T = "/api/v2/templates/{template}";
const V = "/api/v2/templateversions/{templateversion}";
const W = "/api/v2/workspaces/{workspace}";
const B = "/api/v2/workspacebuilds/{workspacebuild}";
const A = "/api/v2/workspaceagents/{workspaceagent}";
const C = "/api/v2/chats/{chat}";
/** Of nothing that there is. */
const NOBODYS_ID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const said = [{ type: "text", text: "hang: on" }];
const week = { start_time: "2025-01-06T00:00:00Z", end_time: "2025-01-13T00:00:00Z" };
const share = { agent_name: "dev", port: 8080, protocol: "http", share_level: "owner" };

// biome-ignore format: a table. stranger, agent, other agent, foreigner, colleague, ada (whose it is), admin (the site's owner)
export const TABLE: Readonly<Record<string, string | Row>> = {
  "GET /healthz": OPEN,
  "GET /readyz": OPEN,
  "GET /api/v2/buildinfo": OPEN,
  "GET /api/v2/appearance": OPEN,
  "GET /api/v2/deployment/ssh": EVERY_USER,
  "GET /api/v2/experiments": EVERY_USER,
  "GET /api/v2/experiments/available": EVERY_USER,
  "GET /api/v2/regions": EVERY_USER,

  "GET /api/v2/organizations": EVERY_USER,
  "POST /api/v2/organizations": { is: "401 401 401 403 403 403 201", body: { name: "{fresh}" }, fresh: "name" },
  [`GET ${O}`]: MEMBERS,
  [`PATCH ${O}`]: { is: LEADS, body: { description: "ours" } },
  [`DELETE ${O}`]: { is: LEADS, fresh: "organization" },
  [`GET ${O}/members`]: MEMBERS,
  [`GET ${O}/paginated-members`]: MEMBERS,
  [`GET ${O}/members/roles`]: MEMBERS,
  [`GET ${O}/members/{user}`]: PRIVATE,
  [`GET ${O}/members/{user}/chats/model-overrides`]: { is: "401 401 401 404 404 403 403", why: "each for themselves, and nobody has allowed it" },
  [`PUT ${O}/members/{user}/chats/model-overrides/{context}`]: { is: "401 401 401 404 404 403 403", path: { context: "root" }, body: { mode: "chat_default" }, why: "each for themselves, and nobody has allowed it" },
  [`POST ${O}/members/{user}`]: { is: LEADS, path: { user: "{zoe}" }, fresh: "organization", why: "the new one has nobody in it" },
  [`DELETE ${O}/members/{user}`]: { is: "401 401 401 404 404 403 204", fresh: "user" },
  [`PUT ${O}/members/{user}/roles`]: { is: "401 401 401 404 404 403 200", body: { roles: [] }, fresh: "user" },
  [`GET ${O}/chats/model-overrides`]: MEMBERS,
  [`PUT ${O}/chats/model-overrides/{context}`]: { is: as(LEADS, 204), path: { context: "compaction" }, body: { mode: "chat_default" } },
  [`GET ${O}/mcp-servers`]: MEMBERS,
  [`POST ${O}/mcp-servers`]: { is: as(LEADS, 201), body: { slug: "{fresh}", url: "https://mcp.invalid/" }, fresh: "name" },
  [`GET ${O}/mcp-servers/{server}`]: MEMBERS,
  [`PATCH ${O}/mcp-servers/{server}`]: { is: LEADS, body: { display_name: "ours" } },
  [`DELETE ${O}/mcp-servers/{server}`]: { is: as(LEADS, 204), fresh: "mcp" },
  [`POST ${O}/mcp-servers/{server}/oauth2/start`]: MEMBERS,
  [`GET ${O}/mcp-servers/{server}/oauth2/callback`]: { is: as(MEMBERS, 400), why: "nobody has begun" },
  [`DELETE ${O}/mcp-servers/{server}/oauth2`]: { is: as(MEMBERS, 404), why: "nobody has signed in there" },
  [`GET ${O}/settings/workspace-sharing`]: MEMBERS,
  [`PATCH ${O}/settings/workspace-sharing`]: { is: LEADS, body: { sharing_disabled: false } },
  [`GET ${O}/members/{user}/workspaces/available-users`]: { is: "401 401 401 404 404 403 200", why: "for those who make workspaces for all; bob does not see ada at all" },
  [`POST ${O}/provisionerkeys`]: { is: as(LEADS, 201), body: { name: "{fresh}" }, fresh: "name" },
  [`GET ${O}/provisionerkeys`]: LEADS,
  [`DELETE ${O}/provisionerkeys/{key}`]: { is: as(LEADS, 204), path: { key: "worker" }, fresh: "provisionerkey" },
  [`GET ${O}/provisionerdaemons`]: MEMBERS,
  [`GET ${O}/provisionerdaemons/serve`]: { is: NOBODY, why: "workers bring a provisioner key" },

  "POST /api/v2/workspaceagents/cloud-a-instance-identity": NOBODY,
  "POST /api/v2/workspaceagents/aws-instance-identity": NOBODY,
  "POST /api/v2/workspaceagents/cloud-b-instance-identity": NOBODY,
  "POST /api/v2/workspaceagents/azure-instance-identity": NOBODY,
  "POST /api/v2/workspaceagents/cloud-c-instance-identity": NOBODY,
  "POST /api/v2/workspaceagents/google-instance-identity": NOBODY,
  "POST /api/v2/workspaceagents/me/log-source": { is: "401 200 200 401 401 401 401", body: { id: "{task}", display_name: "tests", icon: "" } },
  "PATCH /api/v2/workspaceagents/me/logs": { is: "401 200 200 401 401 401 401", body: { logs: [{ created_at: "2030-01-01T00:00:00Z", level: "info", output: "hello" }] } },
  "GET /api/v2/workspaceagents/me/gitauth": { is: "401 410 410 401 401 401 401" },
  "PATCH /api/v2/workspaceagents/me/app-status": { is: "401 400 400 401 401 401 401", body: { app_slug: "none", state: "working", message: "m", uri: "" }, why: "it has no app" },
  "GET /api/v2/workspaceagents/me/gitsshkey": "401 200 200 401 401 401 401",
  "GET /api/v2/workspaceagents/me/reinit": { is: "401 409 409 401 401 401 401", why: "no workspace that waits to be given to somebody" },
  "POST /api/v2/workspaceagents/me/tasks/{task}/log-snapshot": { is: "401 404 404 401 401 401 401", body: { messages: [] }, why: "there are no tasks yet" },
  "GET /api/v2/workspaceagents/me/rpc": "401 400 400 401 401 401 401",
  "GET /api/v2/workspaceagents/me/tunnel": "401 400 400 401 401 401 401",
  "GET /derp": { is: as(OPEN, 426), why: "relays know nobody: what passes is sealed between its two ends" },
  "GET /derp/latency-check": OPEN,
  "GET /api/v2/derp-map": as(EVERY_USER, 400),
  "GET /api/v2/tailnet": as(EVERY_USER, 400),
  "GET /api/v2/workspaceagents/connection": EVERY_USER,
  [`GET ${A}/connection`]: PRIVATE,
  [`GET ${A}/coordinate`]: PRIVATE_SOCKET,
  "GET /api/v2/workspaceagents/me/external-auth": { is: "401 200 200 401 401 401 401", query: { id: "acme" } },
  [`GET ${A}`]: PRIVATE,
  [`GET ${A}/watch-metadata`]: PRIVATE,
  [`GET ${A}/watch-metadata-ws`]: PRIVATE_SOCKET,
  [`GET ${A}/logs`]: PRIVATE,
  [`GET ${A}/startup-logs`]: { is: "401 401 401 410 410 410 410", why: "the route is gone, whichever agent is meant" },
  [`GET ${A}/listening-ports`]: { is: PRIVATE_SOCKET, why: "400: no daemon is connected" },
  [`GET ${A}/containers`]: { is: PRIVATE_SOCKET, query: { label: "a=b" }, why: "400: no daemon is connected" },
  [`GET ${A}/containers/watch`]: { is: PRIVATE_SOCKET, why: "400: no daemon is connected" },
  [`POST ${A}/containers/devcontainers/{devcontainer}/recreate`]: { is: PRIVATE_SOCKET, path: { devcontainer: NOBODYS_ID }, why: "400: no daemon is connected" },
  [`DELETE ${A}/containers/devcontainers/{devcontainer}`]: { is: PRIVATE_SOCKET, path: { devcontainer: NOBODYS_ID }, why: "400: no daemon is connected" },
  [`GET ${A}/pty`]: PRIVATE_SOCKET,

  "POST /api/v2/users/login": NOBODY,
  "POST /api/v2/users/login/second-factor": NOBODY,
  "POST /api/v2/users/logout": { is: EVERY_USER, fresh: "session" },
  "GET /api/v2/users/first": OPEN,
  "POST /api/v2/users/first": as(OPEN, 409),
  "GET /api/v2/users/authmethods": OPEN,
  "POST /api/v2/users/validate-password": OPEN,
  "GET /api/v2/users": EVERY_USER,
  "POST /api/v2/users": { is: "401 401 401 403 403 403 201", body: { email: "{fresh}@example.com", username: "{fresh}", password: "a-long-enough-secret" }, fresh: "name" },
  "GET /api/v2/users/roles": EVERY_USER,
  [`GET ${U}`]: PRIVATE,
  [`DELETE ${U}`]: { is: "401 401 401 404 404 403 200", fresh: "user" },
  [`PUT ${U}/profile`]: { is: PRIVATE, body: { username: "ada", name: "Ada" } },
  [`PUT ${U}/status/{status}`]: { is: "401 401 401 404 404 403 200", fresh: "user" },
  [`PUT ${U}/password`]: { is: PRIVATE_SOCKET, body: { password: "another-long-Secret", old_password: "x" }, why: "400: ada has no password" },
  [`GET ${U}/factors`]: PRIVATE,
  [`PUT ${U}/factors/required`]: { is: "401 401 401 404 404 403 400", body: { required: true }, why: "400: ada has no password" },
  [`DELETE ${U}/factors`]: { is: "401 401 401 404 404 403 409", why: "409: ada has none" },
  [`POST ${U}/factors/totp`]: { is: OWN_FACTOR, why: HAS_NO_PASSWORD },
  [`POST ${U}/factors/totp/confirm`]: { is: OWN_FACTOR, body: { enrolment: "x", code: "123456" }, why: HAS_NO_PASSWORD },
  [`DELETE ${U}/factors/totp`]: { is: OWN_FACTOR, body: { password: "x", code: "123456" }, why: HAS_NO_PASSWORD },
  [`POST ${U}/factors/recovery-codes`]: { is: OWN_FACTOR, why: HAS_NO_PASSWORD },
  [`POST ${U}/confirm`]: { is: OWN_FACTOR, body: { password: "x" }, why: HAS_NO_PASSWORD },
  [`GET ${U}/roles`]: PRIVATE,
  [`PUT ${U}/roles`]: { is: "401 401 401 404 404 403 200", body: { roles: [] }, fresh: "user" },
  [`GET ${U}/organizations`]: PRIVATE,
  [`GET ${U}/organizations/{organization}`]: PRIVATE,
  [`GET ${U}/skills`]: OWN,
  [`POST ${U}/skills`]: { is: as(OWN, 201), body: { name: "{fresh}", description: "d", content: "c" }, fresh: "name" },
  [`GET ${U}/skills/{skill}`]: OWN,
  [`PATCH ${U}/skills/{skill}`]: { is: OWN, body: { description: "e" } },
  [`DELETE ${U}/skills/{skill}`]: { is: as(OWN, 204), fresh: "skill" },
  [`GET ${U}/gitsshkey`]: PRIVATE,
  [`PUT ${U}/gitsshkey`]: PRIVATE,
  [`POST ${U}/keys`]: as(PRIVATE, 201),
  [`GET ${U}/keys/tokens`]: PRIVATE,
  [`POST ${U}/keys/tokens`]: { is: as(PRIVATE, 201), body: { token_name: "{fresh}" }, fresh: "name" },
  [`GET ${U}/keys/tokens/tokenconfig`]: PRIVATE,
  [`GET ${U}/keys/tokens/{name}`]: PRIVATE,
  [`GET ${U}/keys/{key}`]: PRIVATE,
  [`DELETE ${U}/keys/{key}`]: { is: as(PRIVATE, 204), fresh: "key" },
  [`PUT ${U}/keys/{key}/expire`]: { is: as(PRIVATE, 204), fresh: "key" },

  "GET /api/v2/applications/host": EVERY_USER,
  "GET /api/v2/applications/auth-redirect": { is: as(EVERY_USER, 400), why: "400: it leads to no host of apps" },
  "GET /api/v2/external-auth": EVERY_USER,
  "GET /api/v2/external-auth/{externalauth}": EVERY_USER,
  "DELETE /api/v2/external-auth/{externalauth}": { is: as(EVERY_USER, 404), why: "nobody has linked an account" },
  "POST /api/v2/external-auth/{externalauth}/start": EVERY_USER,
  "POST /api/v2/external-auth/{externalauth}/callback": { is: as(EVERY_USER, 400), why: "400: nobody has begun with this state" },
  "GET /api/v2/external-auth/{externalauth}/device": { is: as(EVERY_USER, 400), why: "400: it is done without a code" },
  "POST /api/v2/external-auth/{externalauth}/device": as(EVERY_USER, 400),

  "POST /api/v2/files": { is: "401 401 401 403 403 403 201", sends: "application/x-tar" },
  "GET /api/v2/files/{file}": "401 401 401 404 404 404 200",
  "GET /api/v2/templates/schema": OPEN,
  "GET /api/v2/templates": EVERY_USER,
  [`GET ${O}/templates`]: MEMBERS,
  [`POST ${O}/templates`]: { is: as(LEADS, 400), body: { name: "local", template_version_id: "{templateversion}" }, why: "400: the version belongs to another template" },
  [`GET ${O}/templates/{name}`]: { is: MEMBERS, path: { name: "local" } },
  [`GET ${T}`]: MEMBERS,
  [`PATCH ${T}`]: { is: LEADS, body: { description: "ours" } },
  [`DELETE ${T}`]: { is: LEADS, fresh: "template" },
  [`GET ${T}/versions`]: MEMBERS,
  [`PATCH ${T}/versions`]: { is: LEADS, body: { id: "{templateversion}" } },
  [`POST ${T}/versions/archive`]: { is: LEADS, fresh: "template" },
  "GET /api/v2/hooks/dispatches": SITE_LEADS,
  "GET /api/v2/audit": { is: SITE_LEADS, query: { limit: "1" } },
  "GET /api/v2/audit/export": SITE_LEADS,
  "GET /api/v2/audit/retention": SITE_LEADS,
  "PUT /api/v2/audit/retention": { is: SITE_LEADS, body: { days: 0, sign_in_days: null, kinds: {} } },
  "GET /api/v2/insights/daus": { is: SITE_LEADS, query: { tz_offset: "0" } },
  "GET /api/v2/insights/templates": { is: SITE_SECRET, query: { ...week, interval: "week" } },
  "GET /api/v2/insights/user-activity": { is: SITE_SECRET, query: week },
  "GET /api/v2/insights/user-latency": { is: SITE_SECRET, query: week },
  "GET /api/v2/insights/user-status-counts": SITE_LEADS,
  [`GET ${T}/daus`]: { is: LEADS, query: { tz_offset: "0" } },
  [`GET ${T}/versions/{name}`]: { is: MEMBERS, path: { name: "first" } },
  [`POST ${O}/templateversions`]: { is: as(LEADS, 201), body: { name: "{fresh}", template_id: "{template}", storage_method: "file", file_id: "{file}", provisioner: "echo" }, fresh: "name" },
  [`GET ${V}`]: MEMBERS,
  [`PATCH ${V}`]: { is: LEADS, body: { message: "ours" } },
  [`PATCH ${V}/cancel`]: { is: as(LEADS, 412), why: "412: its job has ended" },
  [`POST ${V}/archive`]: { is: as(LEADS, 400), why: "400: it is the active one" },
  [`POST ${V}/unarchive`]: LEADS,
  [`GET ${V}/rich-parameters`]: MEMBERS,
  [`GET ${V}/variables`]: LEADS,
  [`GET ${V}/presets`]: MEMBERS,
  [`GET ${V}/resources`]: MEMBERS,
  [`GET ${V}/external-auth`]: MEMBERS,
  [`GET ${V}/logs`]: MEMBERS,

  [`GET ${V}/dynamic-parameters`]: as(MEMBERS, 400),
  [`POST ${V}/dynamic-parameters/evaluate`]: MEMBERS,
  [`POST ${V}/dry-run`]: { is: as(MEMBERS, 201), body: { workspace_name: "try" } },
  [`GET ${V}/dry-run/{job}`]: PRIVATE,
  [`GET ${V}/dry-run/{job}/resources`]: PRIVATE,
  [`GET ${V}/dry-run/{job}/logs`]: PRIVATE,
  [`GET ${V}/dry-run/{job}/matched-provisioners`]: PRIVATE,
  [`PATCH ${V}/dry-run/{job}/cancel`]: { is: as(PRIVATE, 412), why: "412: it has ended" },

  "POST /api/v2/users/{user}/workspaces": { is: PRIVATE, body: { name: "{fresh}", template_id: "{template}" }, fresh: "name" },
  [`POST ${O}/members/{user}/workspaces`]: { is: PRIVATE, body: { name: "{fresh}", template_id: "{template}" }, fresh: "name" },
  "GET /api/v2/users/{user}/workspace/{workspacename}": PRIVATE,
  "GET /api/v2/users/{user}/workspace/{workspacename}/builds/{buildnumber}": PRIVATE,
  "GET /api/v2/workspaces": EVERY_USER,
  [`GET ${W}`]: PRIVATE,
  [`PATCH ${W}`]: { is: as(PRIVATE, 204), body: { name: "dev" } },
  [`PUT ${W}/favorite`]: { is: "401 401 401 404 404 204 403", why: "one's own affair, also for the site's owner" },
  [`DELETE ${W}/favorite`]: "401 401 401 404 404 204 403",
  [`GET ${W}/acl`]: PRIVATE,
  [`PATCH ${W}/acl`]: { is: as(PRIVATE, 204), body: { user_roles: {} } },
  [`DELETE ${W}/acl`]: as(PRIVATE, 204),
  [`GET ${W}/port-share`]: PRIVATE,
  [`POST ${W}/port-share`]: { is: PRIVATE, body: share },
  [`DELETE ${W}/port-share`]: { is: PRIVATE, body: { agent_name: "dev", port: 8080 }, fresh: "share" },
  [`PUT ${W}/autoupdates`]: { is: as(PRIVATE, 204), body: { automatic_updates: "never" } },
  [`GET ${W}/resolve-autostart`]: PRIVATE,
  [`POST ${W}/usage`]: { is: "401 204 404 404 404 204 204", why: "an agent may for its own workspace" },
  [`GET ${W}/activity`]: PRIVATE,
  [`PUT ${W}/autostart`]: { is: as(PRIVATE, 204), body: { schedule: null } },
  [`PUT ${W}/dormant`]: { is: PRIVATE, body: { dormant: false } },
  [`PUT ${W}/extend`]: { is: "401 409 404 404 404 409 409", body: { deadline: "2040-01-01T00:00:00Z" }, why: "409: it has no deadline; an agent may for its own workspace" },
  [`PUT ${W}/ttl`]: { is: as(PRIVATE, 204), body: { ttl_ms: null } },
  [`GET ${W}/watch`]: PRIVATE,
  [`GET ${W}/watch-ws`]: PRIVATE_SOCKET,
  [`POST ${W}/builds`]: { is: as(PRIVATE, 201), body: { transition: "delete" }, fresh: "workspace" },
  [`GET ${W}/builds`]: PRIVATE,
  [`GET ${W}/timings`]: PRIVATE,
  [`GET ${B}`]: PRIVATE,
  [`PATCH ${B}/cancel`]: { is: PRIVATE_SOCKET, why: "400: it has ended" },
  [`GET ${B}/logs`]: PRIVATE,
  [`GET ${B}/parameters`]: PRIVATE,
  [`GET ${B}/resources`]: PRIVATE,
  [`GET ${B}/timings`]: PRIVATE,
  [`GET ${B}/state`]: { is: "401 401 401 404 404 403 200", why: "it may hold the template's secrets" },
  [`PUT ${B}/state`]: { is: "401 401 401 404 404 403 204", body: { state: "" } },

  "GET /api/v2/chats": EVERY_USER,
  "POST /api/v2/chats": { is: "401 401 401 403 201 201 201", body: { organization_id: "{organization_id}", content: said }, why: "the organization is in the body" },
  "GET /api/v2/chats/providers": SITE_LEADS,
  "POST /api/v2/chats/providers": { is: as(SITE_LEADS, 201), body: { provider: "openai-compat", display_name: "{fresh}", base_url: "http://127.0.0.1:1/v1", api_key: "k", enabled: false }, fresh: "name" },
  "PATCH /api/v2/chats/providers/{provider}": { is: SITE_LEADS, body: { enabled: false } },
  "DELETE /api/v2/chats/providers/{provider}": { is: as(SITE_LEADS, 204), fresh: "provider" },
  "GET /api/v2/chats/model-configs": EVERY_USER,
  "POST /api/v2/chats/model-configs": { is: as(SITE_LEADS, 412), body: { provider_id: "{provider}", model: "{fresh}", enabled: false }, why: "412: the provider is not enabled" },
  "PATCH /api/v2/chats/model-configs/{model_config}": { is: SITE_LEADS, body: { enabled: false } },
  "DELETE /api/v2/chats/model-configs/{model_config}": { is: as(SITE_LEADS, 204), fresh: "provider" },
  "GET /api/v2/chats/models": EVERY_USER,
  "POST /api/v2/chats/files": { is: "401 401 401 403 201 201 201", query: { organization: "{organization_id}" }, sends: "text/plain", why: "the organization is in the query" },
  "GET /api/v2/chats/files/{file}": { is: PRIVATE, path: { file: "{chat_file}" } },
  "GET /api/v2/chats/by-workspace": { is: EVERY_USER, query: { workspace_ids: NOBODYS_ID } },
  "GET /api/v2/chats/watch": as(EVERY_USER, 400),
  "GET /api/v2/chats/config/auto-archive-days": EVERY_USER,
  "PUT /api/v2/chats/config/auto-archive-days": { is: as(SITE_LEADS, 204), body: { auto_archive_days: 1 } },
  "GET /api/v2/chats/config/retention-days": EVERY_USER,
  "PUT /api/v2/chats/config/retention-days": { is: as(SITE_LEADS, 204), body: { retention_days: 1 } },
  "GET /api/v2/chats/config/workspace-ttl": EVERY_USER,
  "PUT /api/v2/chats/config/workspace-ttl": { is: as(SITE_LEADS, 204), body: { workspace_ttl_ms: 60000 } },
  "GET /api/v2/chats/config/debug-retention-days": SITE_SECRET,
  "PUT /api/v2/chats/config/debug-retention-days": { is: as(SITE_LEADS, 204), body: { debug_retention_days: 1 } },
  "GET /api/v2/chats/config/personal-model-overrides": SITE_SECRET,
  "PUT /api/v2/chats/config/personal-model-overrides": { is: as(SITE_LEADS, 204), body: { allow_users: false } },
  "GET /api/v2/chats/config/plan-mode-instructions": SITE_SECRET,
  "PUT /api/v2/chats/config/plan-mode-instructions": { is: as(SITE_LEADS, 204), body: { plan_mode_instructions: "" } },
  "GET /api/v2/chats/config/system-prompt": SITE_SECRET,
  "PUT /api/v2/chats/config/system-prompt": { is: as(SITE_LEADS, 204), body: { system_prompt: "" } },
  "GET /api/v2/chats/config/debug-logging": SITE_SECRET,
  "PUT /api/v2/chats/config/debug-logging": { is: as(SITE_LEADS, 204), body: { allow_users: false } },
  "GET /api/v2/chats/config/user-debug-logging": EVERY_USER,
  "PUT /api/v2/chats/config/user-debug-logging": { is: as(EVERY_USER, 403), body: { debug_logging_enabled: true }, why: "nobody has allowed it" },
  "GET /api/v2/chats/config/user-prompt": EVERY_USER,
  "PUT /api/v2/chats/config/user-prompt": { is: EVERY_USER, body: { custom_prompt: "" } },
  "GET /api/v2/chats/config/user-permissions": EVERY_USER,
  "PUT /api/v2/chats/config/user-permissions": { is: as(EVERY_USER, 204), body: { permissions: null } },
  "GET /api/v2/chats/config/user-compaction-thresholds": EVERY_USER,
  "PUT /api/v2/chats/config/user-compaction-thresholds/{model}": { is: as(EVERY_USER, 404), path: { model: NOBODYS_ID }, body: { threshold_percent: 70 }, why: "there is no such model" },
  "DELETE /api/v2/chats/config/user-compaction-thresholds/{model}": { is: as(EVERY_USER, 404), path: { model: NOBODYS_ID }, why: "nothing is set for it" },
  [`GET ${C}`]: PRIVATE,
  [`PATCH ${C}`]: { is: as(PRIVATE, 204), body: { title: "mine" } },
  [`POST ${C}/interrupt`]: { is: PRIVATE, fresh: "chat" },
  [`DELETE ${C}/queue/{queuedMessage}`]: { is: as(PRIVATE, 204), fresh: "chat" },
  [`POST ${C}/queue/{queuedMessage}/promote`]: { is: "401 401 401 404 404 202 403", fresh: "chat", why: "what drives a chat runs with its owner's rights" },
  [`POST ${C}/tool-results`]: { is: "401 401 401 404 404 409 403", body: { results: [] }, why: "409: it waits for none" },
  [`POST ${C}/fork`]: { is: "401 401 401 404 404 201 403", body: {}, why: "the copy would be the owner's, with the owner's rights" },
  [`DELETE ${C}`]: { is: as(PRIVATE, 409), fresh: "chat", why: "409: its turn goes on" },
  [`POST ${C}/permissions`]: { is: "401 401 401 404 404 409 403", body: { answers: [] }, why: "409: it waits for none" },
  [`POST ${C}/reconcile-invalid`]: { is: as(PRIVATE, 409), why: "409: nothing is wrong with it; mending is, like stopping, for the site's owner, too" },
  [`POST ${C}/messages`]: { is: "401 401 401 404 404 200 403", body: { content: said } },
  [`POST ${C}/title/propose`]: { is: "401 401 401 404 404 200 403", why: "it asks the model, which runs with the owner's rights" },
  [`GET ${C}/messages`]: PRIVATE,
  [`PATCH ${C}/messages/{message}`]: { is: "401 401 401 404 404 200 403", body: { content: said }, fresh: "chat" },
  [`GET ${C}/prompts`]: PRIVATE,
  [`PUT ${C}/context`]: { is: "401 401 401 404 404 400 403", why: "each for themselves; it is bound to no workspace" },
  [`GET ${C}/acl`]: PRIVATE,
  [`GET ${C}/cost`]: PRIVATE,
  [`GET ${C}/debug/runs`]: PRIVATE,
  [`GET ${C}/debug/runs/{run}`]: { is: as(PRIVATE, 404), path: { run: NOBODYS_ID }, why: "nothing is recorded" },
  [`PATCH ${C}/acl`]: { is: as(PRIVATE, 204), body: { user_roles: {} } },
  [`GET ${C}/stream`]: PRIVATE_SOCKET,
  [`GET ${C}/stream/git`]: { is: PRIVATE_SOCKET, why: "400: no daemon is connected" },
  "GET /api/experimental/chats/{chat}/stream/desktop": { is: PRIVATE_SOCKET, why: "400: no daemon is connected" },
  [`GET ${C}/diff`]: { is: as(PRIVATE, 404), why: "404: nothing was pushed" },
};
