// What the authorization matrix needs to know of operations beyond the `access` that they declare: what a call sends, and which status is
// no success or does not follow from the access. Read by matrix-call.ts; test/security/RULES.md (SC) says when a row is needed. A row and a
// declared access are checked against the specification (facts/platform 3.8), never against what the code answers.
import type { Access } from "#src/api/http/operation.ts";
import type { MakerName } from "./matrix-world.ts";
import { A, B, C, K, O, T, U, V, W } from "./paths.ts";

export type Row = {
  /** One status for each of CALLERS, in their order, where it does not follow from the `access` that the operation declares. */
  readonly is?: string;
  /** What callers get who may, when it is not the operation's success. */
  readonly answers?: number;
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
/** For the workspace's agent, and any other agent of itself. */
const AGENT = "401 200 200 401 401 401 401";
/** Who looks after users; ada may see herself. */
const LOOKS_AFTER_USERS = "401 401 401 404 404 403 200";

/** The row of each declared access, with 200 where callers may. */
export const STATUSES: Readonly<Record<Access, string>> = {
  anyone: OPEN,
  credentials: NOBODY,
  agent: AGENT,
  users: EVERY_USER,
  members: MEMBERS,
  owner: PRIVATE,
  owner_only: OWN,
  organization_admins: LEADS,
  user_admins: LOOKS_AFTER_USERS,
  admins: SITE_LEADS,
  admins_hidden: SITE_SECRET,
};

const HAS_NO_PASSWORD = "400: ada has no password";
/** The same, where it takes a socket and a plain request is told so. */
const PRIVATE_SOCKET = "401 401 401 404 404 400 400";
/** Returns the row with another status for callers who may. */
export const as = (row: string, status: number): string => row.replaceAll("200", String(status));

/** Of nothing that there is. */
const NOBODYS_ID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const said = [{ type: "text", text: "hang: on" }];
const week = { start_time: "2025-01-06T00:00:00Z", end_time: "2025-01-13T00:00:00Z" };
export const CODING_AGENT = {
  display_name: "Mine",
  icon: "",
  enabled: true,
  command: "mine",
  arguments: [],
  variables: {},
  install_script: "",
  dialect: "openai",
  auth_method: "",
  mode: "",
};
const share = { agent_name: "dev", port: 8080, protocol: "http", share_level: "owner" };

// biome-ignore format: a table. stranger, agent, other agent, foreigner, colleague, ada (whose it is), admin (the site's owner)
export const TABLE: Readonly<Record<string, string | Row>> = {
  "GET /bin/{file}": { path: { file: "SHA256SUMS" } },
  "GET /init-script/{os}/{arch}": { path: { os: "linux", arch: "amd64" } },
  "GET /api/v2/init-script/{os}/{arch}": { path: { os: "linux", arch: "amd64" } },
  "PUT /api/v2/ai/settings": { body: { enabled: true, in_workspaces: true, names: [], default_names: {} } },
  "GET /api/v2/ai/calls/{call}/recording": { answers: 404, path: { call: "1" }, why: "there is none" },
  "PUT /api/v2/ai/agents/{coding_agent}": { path: { coding_agent: "mine" }, body: CODING_AGENT },
  "DELETE /api/v2/ai/agents/{coding_agent}": { answers: 404, path: { coding_agent: "none" } },
  "PUT /api/v2/ai/budgets": { body: { scope: "everyone", period: "month", unit: "tokens", amount: 1_000_000_000 } },
  "DELETE /api/v2/ai/budgets/{budget}": { answers: 404, path: { budget: NOBODYS_ID }, why: "there is none" },
  "POST /api/v2/ai/budgets/{budget}/raise": { answers: 404, path: { budget: NOBODYS_ID }, body: { amount: 1 }, why: "there is none" },
  "GET /api/v2/ai/usage": { query: { by: "user" } },
  "PUT /api/v2/prebuilds/settings": { body: { reconciliation_paused: true } },
  [`POST ${A}/apps/{app}/link`]: { path: { app: "editor" } },
  "POST /api/v2/applications/reconnecting-pty-signed-token": { body: { url: "ws://slipway.example/api/v2/workspaceagents/{workspaceagent}/pty", agentID: "{workspaceagent}" } },
  "PUT /api/v2/appearance": { body: { application_name: "" } },
  "POST /api/v2/authcheck": { body: { checks: { one: { object: { resource_type: "workspace" }, action: "read" } } } },
  "PUT /api/v2/debug/health/settings": { body: { dismissed_healthchecks: ["backups"] } },
  "GET /api/v2/deployment/config": SITE_LEADS,
  "GET /api/v2/deployment/external-auth": SITE_LEADS,
  "GET /api/v2/deployment/backups": SITE_LEADS,
  "POST /api/v2/deployment/backups": as(SITE_LEADS, 202),
  "GET /api/v2/deployment/backups/homes": SITE_LEADS,
  "GET /api/v2/deployment/backups/watch": { is: as(SITE_LEADS, 400), why: "it takes a socket" },
  "POST /api/v2/deployment/backups/{backup}/check": { is: as(SITE_LEADS, 404), path: { backup: "slipway-2026-01-01T00-00-00-000Z" }, why: "there is no such backup" },
  "GET /api/v2/deployment/logs": SITE_LEADS,
  "GET /api/v2/deployment/support-bundle": SITE_LEADS,
  "GET /api/v2/deployment/logs/watch": { answers: 400, why: "it takes a socket" },

  "POST /api/v2/organizations": { body: { name: "{fresh}" }, fresh: "name" },
  [`PATCH ${O}`]: { body: { description: "ours" } },
  [`DELETE ${O}`]: { fresh: "organization" },
  [`GET ${O}/members/{user}/chats/model-overrides`]: { is: "401 401 401 404 404 403 403", why: "each for themselves, and nobody has allowed it" },
  [`PUT ${O}/members/{user}/chats/model-overrides/{context}`]: { is: "401 401 401 404 404 403 403", path: { context: "root" }, body: { mode: "chat_default" }, why: "each for themselves, and nobody has allowed it" },
  [`POST ${O}/members/{user}`]: { path: { user: "{zoe}" }, fresh: "organization", why: "the new one has nobody in it" },
  [`DELETE ${O}/members/{user}`]: { fresh: "user", why: "403: it is her only organization" },
  [`PUT ${O}/members/{user}/roles`]: { body: { roles: [] }, fresh: "user" },
  [`POST ${O}/groups`]: { body: { name: "{fresh}" }, fresh: "name" },
  "POST /api/v2/tasks/{user}": { body: { input: "hang: on", name: "{fresh}", template_id: "{template}" }, fresh: "name" },
  [`PATCH ${K}/input`]: { body: { input: "something else" } },
  [`POST ${K}/send`]: { answers: 409, body: { input: "go on" }, why: "its chat has not begun" },
  [`POST ${K}/pause`]: { fresh: "task" },
  [`POST ${K}/resume`]: { fresh: "task" },
  [`DELETE ${K}`]: { fresh: "task" },
  "PATCH /api/v2/groups/{group}": { body: { display_name: "ours" } },
  "DELETE /api/v2/groups/{group}": { fresh: "group" },
  [`PUT ${O}/chats/model-overrides/{context}`]: { path: { context: "compaction" }, body: { mode: "chat_default" } },
  [`POST ${O}/mcp-servers`]: { body: { slug: "{fresh}", url: "https://mcp.invalid/" }, fresh: "name" },
  [`PATCH ${O}/mcp-servers/{mcp_server}`]: { body: { display_name: "ours" } },
  [`POST ${O}/mcp-servers/{mcp_server}/try`]: { why: "nothing answers there, which is what is told" },
  [`DELETE ${O}/mcp-servers/{mcp_server}`]: { fresh: "mcp" },
  [`GET ${O}/mcp-servers/{mcp_server}/oauth2/callback`]: { answers: 400, why: "nobody has begun" },
  [`DELETE ${O}/mcp-servers/{mcp_server}/oauth2`]: { answers: 404, why: "nobody has signed in there" },
  [`PATCH ${O}/settings/workspace-sharing`]: { body: { sharing_disabled: false } },
  [`GET ${O}/members/{user}/workspaces/available-users`]: { why: "for those who make workspaces for all; bob does not see ada at all" },
  [`POST ${O}/provisionerkeys`]: { body: { name: "{fresh}" }, fresh: "name" },
  [`GET ${O}/provisionerkeys/{key}`]: { path: { key: "worker" }, fresh: "provisionerkey" },
  [`DELETE ${O}/provisionerkeys/{key}`]: { path: { key: "worker" }, fresh: "provisionerkey" },
  [`GET ${O}/provisionerdaemons/serve`]: { why: "workers bring a provisioner key" },

  "POST /api/v2/workspaceagents/me/log-source": { body: { id: "{id}", display_name: "tests", icon: "" } },
  "PATCH /api/v2/workspaceagents/me/logs": { body: { logs: [{ created_at: "2030-01-01T00:00:00Z", level: "info", output: "hello" }] } },
  "GET /api/v2/workspaceagents/me/gitauth": { answers: 410 },
  "PATCH /api/v2/workspaceagents/me/app-status": { answers: 400, body: { app_slug: "none", state: "working", message: "m", uri: "" }, why: "it has no app" },
  "GET /api/v2/workspaceagents/me/reinit": { answers: 409, why: "no workspace that waits to be given to somebody" },
  "POST /api/v2/workspaceagents/me/tasks/{task}/log-snapshot": { is: "401 404 404 401 401 401 401", body: { messages: [] }, why: "it is of another workspace" },
  "GET /api/v2/workspaceagents/me/rpc": { answers: 400 },
  "GET /api/v2/workspaceagents/me/tunnel": { answers: 400 },
  "GET /derp": { answers: 426, why: "relays know nobody: what passes is sealed between its two ends" },
  "GET /api/v2/derp-map": { answers: 400 },
  "GET /api/v2/tailnet": { answers: 400 },
  [`GET ${A}/coordinate`]: { answers: 400 },
  "GET /api/v2/workspaceagents/me/external-auth": { query: { id: "acme" } },
  [`GET ${A}/watch-metadata-ws`]: { answers: 400 },
  [`GET ${A}/startup-logs`]: { is: "401 401 401 410 410 410 410", why: "the route is gone, whichever agent is meant" },
  [`GET ${A}/listening-ports`]: { answers: 400, why: "400: no daemon is connected" },
  [`GET ${A}/containers`]: { answers: 400, query: { label: "a=b" }, why: "400: no daemon is connected" },
  [`GET ${A}/containers/watch`]: { answers: 400, why: "400: no daemon is connected" },
  [`POST ${A}/containers/devcontainers/{devcontainer}/recreate`]: { answers: 400, path: { devcontainer: NOBODYS_ID }, why: "400: no daemon is connected" },
  [`DELETE ${A}/containers/devcontainers/{devcontainer}`]: { answers: 400, path: { devcontainer: NOBODYS_ID }, why: "400: no daemon is connected" },
  [`GET ${A}/pty`]: { answers: 400 },
  [`GET ${A}/files`]: { answers: 400, why: "400: no daemon is connected" },
  [`GET ${A}/files/content`]: { answers: 400, query: { path: "a.txt" }, why: "400: no daemon is connected" },
  [`POST ${A}/files`]: { answers: 400, query: { name: "a.txt" }, why: "400: no daemon is connected" },

  "POST /api/v2/users/login/passkey/start": { answers: 400, why: "400: the access URL is an address" },
  "POST /api/v2/users/logout": { fresh: "session" },
  "POST /api/v2/users/first": { answers: 409 },
  "GET /api/v2/users/oidc/callback": { is: as(OPEN, 404), why: "404: there is no provider" },
  "GET /api/v2/users/oidc/{provider}/start": { is: as(OPEN, 404), path: { provider: "none" }, why: "404: there is no provider" },
  "GET /api/v2/users/oidc/{provider}/callback": { answers: 404, path: { provider: "none" }, why: "404: there is no provider" },
  "POST /api/v2/users/oidc/{provider}/try": { answers: 404, path: { provider: "none" }, why: "404: there is no provider" },
  "POST /api/v2/users/oidc/{provider}/try/complete": { answers: 404, path: { provider: "none" }, why: "404: there is no provider" },
  "POST /api/v2/invitations": { body: { people: [{ email: "{fresh}@example.com" }] }, fresh: "name" },
  "POST /api/v2/invitations/{invitation}/resend": { answers: 404, path: { invitation: NOBODYS_ID }, why: "404: there is no such invitation" },
  "DELETE /api/v2/invitations/{invitation}": { answers: 404, path: { invitation: NOBODYS_ID }, why: "404: there is no such invitation" },
  "POST /api/v2/invitations/look": { answers: 404, body: { token: "none" }, why: "404: no link has this token" },
  "POST /api/v2/invitations/accept": { answers: 404, body: { token: "none", username: "somebody", password: "a-long-enough-secret" }, why: "404: no link has this token" },
  "POST /api/v2/invitations/accept/passkey/start": { answers: 404, body: { token: "none", username: "somebody" }, why: "404: no link has this token" },
  "POST /api/v2/invitations/accept/oidc": { answers: 404, body: { token: "none", provider: "none" }, why: "404: no link has this token" },
  "POST /api/v2/users": { body: { email: "{fresh}@example.com", username: "{fresh}", password: "a-long-enough-secret" }, fresh: "name" },
  [`DELETE ${U}`]: { fresh: "user" },
  [`DELETE ${U}/oidc-links`]: { answers: 409, why: "409: ada has no link" },
  [`PUT ${U}/profile`]: { body: { username: "ada", name: "Ada" } },
  [`PUT ${U}/status/{status}`]: { fresh: "user" },
  [`PUT ${U}/password`]: { answers: 400, body: { password: "another-long-Secret", old_password: "x" }, why: "400: ada has no password" },
  [`PUT ${U}/factors/required`]: { answers: 400, body: { required: true }, why: "400: ada has no password" },
  [`DELETE ${U}/factors`]: { answers: 409, why: "409: ada has none" },
  [`POST ${U}/factors/totp`]: { answers: 400, why: HAS_NO_PASSWORD },
  [`POST ${U}/factors/totp/confirm`]: { answers: 400, body: { enrolment: "x", code: "123456" }, why: HAS_NO_PASSWORD },
  [`DELETE ${U}/factors/totp`]: { answers: 400, body: { password: "x", code: "123456" }, why: HAS_NO_PASSWORD },
  [`POST ${U}/factors/recovery-codes`]: { answers: 400, why: HAS_NO_PASSWORD },
  [`GET ${U}/passkeys`]: { answers: 400, why: HAS_NO_PASSWORD },
  [`POST ${U}/passkeys/start`]: { answers: 400, why: HAS_NO_PASSWORD },
  [`POST ${U}/passkeys`]: { answers: 400, why: HAS_NO_PASSWORD },
  [`PATCH ${U}/passkeys/{passkey}`]: { answers: 400, path: { passkey: NOBODYS_ID }, why: HAS_NO_PASSWORD },
  [`DELETE ${U}/passkeys/{passkey}`]: { answers: 400, path: { passkey: NOBODYS_ID }, why: HAS_NO_PASSWORD },
  [`POST ${U}/confirm/passkey/start`]: { answers: 400, why: HAS_NO_PASSWORD },
  [`POST ${U}/confirm/passkey`]: { answers: 400, why: HAS_NO_PASSWORD },
  [`POST ${U}/confirm`]: { answers: 400, body: { password: "x" }, why: HAS_NO_PASSWORD },
  [`PUT ${U}/roles`]: { body: { roles: [] }, fresh: "user" },
  "POST /api/v2/oauth2-provider/apps": { body: { name: "{fresh}", callback_url: "https://app.invalid/" }, fresh: "name" },
  "PUT /api/v2/oauth2-provider/apps/{oauth2_app}": { body: { icon: "" } },
  "DELETE /api/v2/oauth2-provider/apps/{oauth2_app}": { fresh: "oauth2app" },
  "POST /api/v2/oauth2-provider/apps/{oauth2_app}/secrets": { fresh: "oauth2app" },
  "DELETE /api/v2/oauth2-provider/apps/{oauth2_app}/secrets/{oauth2_secret}": { fresh: "oauth2app" },
  "GET /api/v2/oauth2-provider/authorize": { query: { client_id: "{oauth2_app}", redirect_uri: "https://app.invalid/" } },
  "POST /api/v2/oauth2-provider/authorize": { body: { client_id: "{oauth2_app}", redirect_uri: "https://app.invalid/", approve: false } },
  [`DELETE ${U}/oauth2-grants/{grant}`]: { fresh: "grant" },
  [`POST ${U}/secrets`]: { body: { name: "{fresh}", value: "v" }, fresh: "name" },
  [`PATCH ${U}/secrets/{secret}`]: { body: { description: "e" } },
  [`DELETE ${U}/secrets/{secret}`]: { fresh: "secret" },
  [`POST ${U}/skills`]: { body: { name: "{fresh}", description: "d", content: "c" }, fresh: "name" },
  [`PATCH ${U}/skills/{skill}`]: { body: { description: "e" } },
  [`DELETE ${U}/skills/{skill}`]: { fresh: "skill" },
  "GET /api/v2/notifications/inbox/watch": { answers: 400 },
  "PUT /api/v2/notifications/inbox/{notification}/read-status": { answers: 404, path: { notification: NOBODYS_ID }, body: { is_read: true }, why: "404: nobody was told anything" },
  "PUT /api/v2/notifications/settings": { body: { notifier_paused: false } },
  "PUT /api/v2/notifications/templates/{notification_template}/method": { path: { notification_template: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0001" }, body: { method: "inbox" } },
  "GET /api/v2/notifications/dispatch-methods": EVERY_USER,
  "POST /api/v2/notifications/test": as(EVERY_USER, 204),
  [`GET ${U}/quiet-hours`]: PRIVATE,
  [`PUT ${U}/quiet-hours`]: { is: PRIVATE, body: { schedule: "CRON_TZ=UTC 30 21 * * *" } },
  [`GET ${U}/preferences`]: OWN,
  [`PUT ${U}/preferences`]: { is: OWN, body: { task_notification_alert_dismissed: true } },
  [`GET ${U}/appearance`]: OWN,
  [`PUT ${U}/appearance`]: { is: OWN, body: { theme_preference: "dark", terminal_font: "" } },
  [`GET ${U}/autofill-parameters`]: { query: { template_id: "{template}" } },
  [`PUT ${U}/notifications/preferences`]: { body: { template_disabled_map: {} } },
  [`POST ${U}/webpush/subscription`]: { answers: 400, body: { endpoint: "http://127.0.0.1/x", auth_key: "", p256dh_key: "" }, why: "400: no such place is called" },
  [`DELETE ${U}/webpush/subscription`]: { answers: 404, body: { endpoint: "https://push.invalid/x" }, why: "404: no browser is pushed" },
  [`POST ${U}/keys/tokens`]: { body: { token_name: "{fresh}" }, fresh: "name" },
  [`PATCH ${U}/keys/tokens/{name}`]: { body: { scopes: ["workspace:read"] } },
  [`DELETE ${U}/keys/{key}`]: { fresh: "key" },
  [`PUT ${U}/keys/{key}/expire`]: { fresh: "key" },
  [`DELETE ${U}/sessions/{session}`]: { fresh: "signin" },

  "GET /api/v2/applications/auth-redirect": { answers: 307, why: "307: without a target it leads to the server itself" },
  "DELETE /api/v2/external-auth/{externalauth}": { answers: 404, why: "nobody has linked an account" },
  "POST /api/v2/external-auth/{externalauth}/callback": { answers: 400, why: "400: nobody has begun with this state" },
  "GET /api/v2/external-auth/{externalauth}/device": { answers: 400, why: "400: it is done without a code" },
  "POST /api/v2/external-auth/{externalauth}/device": { answers: 400 },

  "POST /api/v2/files": { answers: 201, sends: "application/x-tar" },
  "GET /api/v2/files/{file}": "401 401 401 404 404 404 200",
  [`POST ${O}/templates`]: { answers: 400, body: { name: "local", template_version_id: "{templateversion}" }, why: "400: the version belongs to another template" },
  [`GET ${O}/templates/{name}`]: { path: { name: "local" } },
  [`GET ${O}/templates/{name}/versions/{version}`]: { path: { name: "local", version: "v1" } },
  [`GET ${O}/templates/{name}/versions/{version}/previous`]: { answers: 404, path: { name: "local", version: "v1" }, why: "404: it is the first" },
  [`PATCH ${T}`]: { body: { description: "ours" } },
  [`DELETE ${T}`]: { fresh: "template" },
  [`PATCH ${T}/acl`]: { body: { user_perms: { "{bob}": "use" } } },
  [`PATCH ${T}/versions`]: { body: { id: "{templateversion}" } },
  [`POST ${T}/versions/archive`]: { fresh: "template" },
  "POST /api/v2/hooks/consumer/try": { answers: 409, why: "none is set up" },
  "GET /api/v2/audit": { query: { limit: "1" } },
  "GET /api/v2/audit/watch": { answers: 400, why: "it takes a socket" },
  "GET /api/v2/connectionlog": { query: { limit: "1" } },
  "PUT /api/v2/connectionlog/retention": { body: { days: 90 } },
  "PUT /api/v2/audit/retention": { body: { days: 0, sign_in_days: null, kinds: {} } },
  "GET /api/v2/insights/daus": { query: { tz_offset: "0" } },
  "GET /api/v2/insights/templates": { query: { ...week, interval: "week" } },
  "GET /api/v2/insights/user-activity": { query: week },
  "GET /api/v2/insights/user-latency": { query: week },
  "GET /api/v2/insights/builds": { query: { ...week, interval: "week" } },
  "GET /api/v2/insights/chats": { query: { ...week, interval: "week" } },
  [`GET ${T}/daus`]: { query: { tz_offset: "0" } },
  [`GET ${T}/versions/{name}`]: { path: { name: "first" } },
  [`POST ${O}/templateversions`]: { body: { name: "{fresh}", template_id: "{template}", storage_method: "file", file_id: "{file}", provisioner: "echo" }, fresh: "name" },
  [`PATCH ${V}`]: { body: { message: "ours" } },
  [`PATCH ${V}/cancel`]: { answers: 412, why: "412: its job has ended" },
  [`POST ${V}/archive`]: { answers: 400, why: "400: it is the active one" },

  [`GET ${V}/dynamic-parameters`]: { answers: 400 },
  "POST /api/v2/repositories/read": { answers: 400, body: { repository: { url: "no link" } }, why: "400: it is no link" },
  [`POST ${V}/dry-run`]: { body: { workspace_name: "try" } },
  [`PATCH ${V}/dry-run/{job}/cancel`]: { answers: 412, why: "412: it has ended" },

  "POST /api/v2/users/{user}/workspaces": { body: { name: "{fresh}", template_id: "{template}" }, fresh: "name" },
  [`POST ${O}/members/{user}/workspaces`]: { body: { name: "{fresh}", template_id: "{template}" }, fresh: "name" },
  [`PATCH ${W}`]: { body: { name: "dev" } },
  [`PUT ${W}/favorite`]: { why: "one's own affair, also for the site's owner" },
  [`GET ${W}/external-agent/{agent}/credentials`]: { is: "401 401 401 404 404 404 404", path: { agent: "main" }, why: "it has no external agent" },
  [`PATCH ${W}/acl`]: { body: { user_roles: {} } },
  [`POST ${W}/port-share`]: { body: share },
  [`DELETE ${W}/port-share`]: { body: { agent_name: "dev", port: 8080 }, fresh: "share" },
  [`POST ${W}/restore`]: { answers: 409, body: {}, why: "409: it is not in the trash" },
  [`GET ${W}/snapshots`]: PRIVATE,
  [`POST ${W}/snapshots`]: { is: as(PRIVATE, 400), body: {}, why: "400: what keeps no files has no snapshots" },
  [`POST ${W}/snapshots/{snapshot}/restore`]: { is: as(PRIVATE, 404), path: { snapshot: NOBODYS_ID }, why: "what keeps no files has no snapshots" },
  [`DELETE ${W}/snapshots/{snapshot}`]: { is: as(PRIVATE, 404), path: { snapshot: NOBODYS_ID }, why: "what keeps no files has no snapshots" },
  [`GET ${W}/home-backups`]: PRIVATE,
  [`POST ${W}/home-backups`]: { is: as(PRIVATE, 400), why: "400: what keeps no files has no backups" },
  [`POST ${W}/home-backups/{backup}/fetch`]: { is: as(PRIVATE, 404), path: { backup: NOBODYS_ID }, why: "what keeps no files has no backups" },
  [`DELETE ${W}/home-backups/{backup}`]: { is: as(PRIVATE, 404), path: { backup: NOBODYS_ID }, why: "what keeps no files has no backups" },
  [`GET ${W}/forks`]: PRIVATE,
  [`POST ${W}/forks`]: { is: as(PRIVATE, 400), body: {}, why: "400: what keeps no files has no forks" },
  [`GET ${W}/forks/{fork}`]: { is: as(PRIVATE, 404), path: { fork: NOBODYS_ID }, why: "what keeps no files has no forks" },
  [`PUT ${W}/autoupdates`]: { is: as(PRIVATE, 204), body: { automatic_updates: "never" } },
  [`POST ${W}/usage`]: { is: "401 204 404 404 404 204 204", why: "an agent may for its own workspace" },
  [`PUT ${W}/autostart`]: { body: { schedule: null } },
  [`PUT ${W}/dormant`]: { body: { dormant: false } },
  [`PUT ${W}/extend`]: { is: "401 409 404 404 404 409 409", body: { deadline: "2040-01-01T00:00:00Z" }, why: "409: it has no deadline; an agent may for its own workspace" },
  [`PUT ${W}/ttl`]: { body: { ttl_ms: null } },
  [`GET ${W}/watch-ws`]: { answers: 400 },
  [`POST ${W}/builds`]: { body: { transition: "delete" }, fresh: "workspace" },
  [`POST ${W}/restart`]: { body: {}, fresh: "workspace" },
  [`POST ${W}/wake`]: { body: {}, why: "it runs" },
  [`PATCH ${B}/cancel`]: { answers: 400, why: "400: it has ended" },
  [`GET ${B}/state`]: { why: "it may hold the template's secrets" },
  [`PUT ${B}/state`]: { body: { state: "" } },

  "POST /api/v2/chats": { is: "401 401 401 403 201 201 201", body: { organization_id: "{organization_id}", content: said }, why: "the organization is in the body" },
  "POST /api/v2/chats/providers": { body: { provider: "openai-compat", display_name: "{fresh}", base_url: "http://127.0.0.1:1/v1", api_key: "k", enabled: false }, fresh: "name" },
  "POST /api/v2/chats/providers/try": { body: { provider: "demo" } },
  "PATCH /api/v2/chats/providers/{provider}": { body: { enabled: false } },
  "DELETE /api/v2/chats/providers/{provider}": { fresh: "provider" },
  "POST /api/v2/chats/model-configs": { answers: 412, body: { provider_id: "{provider}", model: "{fresh}", enabled: false }, why: "412: the provider is not enabled" },
  "PATCH /api/v2/chats/model-configs/{model_config}": { body: { enabled: false } },
  "POST /api/v2/chats/model-configs/{model_config}/try": { answers: 409, why: "409: the model is not enabled" },
  "DELETE /api/v2/chats/model-configs/{model_config}": { fresh: "provider" },
  "POST /api/v2/chats/files": { is: "401 401 401 403 201 201 201", query: { organization: "{organization_id}" }, sends: "text/plain", why: "the organization is in the query" },
  "GET /api/v2/chats/files/{file}": { path: { file: "{chat_file}" } },
  "GET /api/v2/chats/by-workspace": { query: { workspace_ids: NOBODYS_ID } },
  "GET /api/v2/chats/watch": { answers: 400 },
  "PUT /api/v2/chats/config/auto-archive-days": { body: { auto_archive_days: 1 } },
  "PUT /api/v2/chats/config/retention-days": { body: { retention_days: 1 } },
  "PUT /api/v2/chats/config/workspace-ttl": { body: { workspace_ttl_ms: 60000 } },
  "PUT /api/v2/chats/config/debug-retention-days": { body: { debug_retention_days: 1 } },
  "PUT /api/v2/chats/config/personal-model-overrides": { body: { allow_users: false } },
  "PUT /api/v2/chats/config/plan-mode-instructions": { body: { plan_mode_instructions: "" } },
  "PUT /api/v2/chats/config/default-permissions": { body: { permissions: null } },
  "PUT /api/v2/chats/config/system-prompt": { body: { system_prompt: "" } },
  "PUT /api/v2/chats/config/debug-logging": { body: { allow_users: false } },
  "PUT /api/v2/chats/config/user-debug-logging": { answers: 403, body: { debug_logging_enabled: true }, why: "nobody has allowed it" },
  "PUT /api/v2/chats/config/user-prompt": { body: { custom_prompt: "" } },
  "PUT /api/v2/chats/config/user-permissions": { body: { permissions: null } },
  "PUT /api/v2/chats/config/user-compaction-thresholds/{model}": { answers: 404, path: { model: NOBODYS_ID }, body: { threshold_percent: 70 }, why: "there is no such model" },
  "DELETE /api/v2/chats/config/user-compaction-thresholds/{model}": { answers: 404, path: { model: NOBODYS_ID }, why: "nothing is set for it" },
  [`PATCH ${C}`]: { body: { title: "mine" } },
  [`POST ${C}/interrupt`]: { fresh: "chat" },
  [`DELETE ${C}/queue/{queuedMessage}`]: { is: as(PRIVATE, 204), fresh: "chat" },
  [`POST ${C}/queue/{queuedMessage}/promote`]: { is: "401 401 401 404 404 202 403", fresh: "chat", why: "what drives a chat runs with its owner's rights" },
  [`POST ${C}/tool-results`]: { is: "401 401 401 404 404 409 403", body: { results: [] }, why: "409: it waits for none" },
  [`POST ${C}/fork`]: { is: "401 401 401 404 404 201 403", body: {}, why: "the copy would be the owner's, with the owner's rights" },
  [`POST ${C}/compact`]: { is: "401 401 401 404 404 409 403", body: {}, why: "409: nothing was answered yet; a summary is asked for with the owner's rights" },
  [`POST ${C}/clear`]: { is: "401 401 401 404 404 409 403", fresh: "chat", why: "409: its turn goes on; what drives a chat runs with its owner's rights" },
  [`DELETE ${C}`]: { is: as(PRIVATE, 409), fresh: "chat", why: "409: its turn goes on" },
  [`GET ${C}/permissions`]: { is: "401 401 401 404 404 200 403", why: "diffs show files of the owner's workspace" },
  [`POST ${C}/permissions`]: { answers: 409, body: { answers: [] }, why: "409: it waits for none" },
  [`POST ${C}/reconcile-invalid`]: { answers: 409, why: "409: nothing is wrong with it; mending is, like stopping, for the site's owner, too" },
  [`POST ${C}/messages`]: { body: { content: said } },
  [`POST ${C}/title/propose`]: { why: "it asks the model, which runs with the owner's rights" },
  [`PATCH ${C}/messages/{message}`]: { body: { content: said }, fresh: "chat" },
  [`PUT ${C}/context`]: { answers: 400, why: "each for themselves; it is bound to no workspace" },
  "PUT /api/v2/chats/usage-limits": { body: { spend_limit_micros: null, period: "month" } },
  "PUT /api/v2/chats/usage-limits/overrides/{user}": { body: { spend_limit_micros: 1_000_000 } },
  "DELETE /api/v2/chats/usage-limits/overrides/{user}": { answers: 404, path: { user: NOBODYS_ID }, why: "nothing is set for it" },
  "PUT /api/v2/chats/usage-limits/group-overrides/{group}": { path: { group: "{organization_id}" }, body: { spend_limit_micros: 1_000_000 } },
  "DELETE /api/v2/chats/usage-limits/group-overrides/{group}": { answers: 404, path: { group: NOBODYS_ID }, why: "nothing is set for it" },
  [`GET ${C}/debug/runs/{run}`]: { answers: 404, path: { run: NOBODYS_ID }, why: "nothing is recorded" },
  [`PATCH ${C}/acl`]: { body: { user_roles: {} } },
  [`GET ${C}/stream`]: { answers: 400 },
  [`GET ${C}/stream/git`]: { answers: 400, why: "400: no daemon is connected" },
  "GET /api/experimental/chats/{chat}/stream/desktop": { is: PRIVATE_SOCKET, why: "400: no daemon is connected" },
  [`GET ${C}/diff`]: { answers: 404, why: "404: nothing was pushed" },
};
