// The audit entries that everything.test.ts expects of operations, where the operation's declared `audit` is not enough. AUDITED lists
// operations that create something, whose rejections leave no entry, and operations that need another call or entry. UNAUDITED
// lists operations that leave no entry, with the reason (rules AU-2, AU-17).
import type { Row } from "../edge/matrix-table.ts";
import type { CallerName, MakerName } from "../edge/matrix-world.ts";
import { A, B, C, K, O, T, U, V, W } from "../edge/paths.ts";
import type { Preparation } from "./preparations.ts";

export type ExpectedAudit = {
  /** `action resource_type` of the entries, in order. If absent, the entry is the same as for a rejected call. */
  readonly entries?: string;
  /** `action resource_type` of the entry for a rejected call, if it differs from `entries`. */
  readonly refusedEntries?: string;
  /** Overrides for the authorization matrix's call. */
  readonly row?: Partial<Row>;
  /** Overrides for the rejected call. */
  readonly refusedRow?: Partial<Row>;
  readonly who?: CallerName;
  /** Creates what the call needs. */
  readonly needs?: Preparation;
  readonly fresh?: MakerName;
};

const CONFIG = "/api/v2/chats/config";
const LIMITS = "/api/v2/chats/usage-limits";
const PORT_SHARE = { agent_name: "dev", port: 8080, protocol: "http", share_level: "owner" };

/** A port that is already shared before the first call. */
export const REFUSED_PORT = { agent_name: "dev", port: 9090, protocol: "http", share_level: "owner" };

// biome-ignore format: a table
export const AUDITED: Readonly<Record<string, string | ExpectedAudit>> = {
  "POST /api/v2/users/login": { entries: "login api_key", who: "stranger", row: { body: { email: "admin@example.com", password: "correct-horse-battery" } } },
  "POST /api/v2/users/logout": "logout api_key",
  "POST /api/v2/users": "create user",
  [`PUT ${U}/profile`]: { row: { body: { username: "ada", name: "Ada L." } } },
  [`PUT ${U}/status/{status}`]: { row: { path: { status: "suspend" } } },
  [`PUT ${U}/password`]: { who: "admin", row: { path: { user: "admin" }, body: { old_password: "correct-horse-battery", password: "another-long-Secret" } } },
  // The successful call creates a key pair; the rejected one would replace an existing pair.
  [`PUT ${U}/gitsshkey`]: { entries: "create git_ssh_key", refusedEntries: "write git_ssh_key", row: { path: { user: "ada" } }, refusedRow: { path: { user: "{bob}" } } },
  [`POST ${U}/keys`]: "create api_key",
  [`POST ${U}/keys/tokens`]: "create api_key",
  [`POST ${A}/keys`]: "create api_key",
  [`DELETE ${U}/sessions`]: "delete api_key",
  [`POST ${A}/apps/{app}/link`]: { entries: "create api_key", row: { path: { app: "editor" } } },

  "PUT /api/v2/ai/agents/{coding_agent}": { who: "admin" },
  "DELETE /api/v2/ai/agents/{coding_agent}": { who: "admin", needs: "codingAgent", row: { path: { coding_agent: "mine" } } },
  "PUT /api/v2/ai/budgets": { who: "admin" },
  "DELETE /api/v2/ai/budgets/{budget}": { entries: "write chat_settings", needs: "budget", who: "admin", row: { path: { budget: "{budget}" } } },
  "POST /api/v2/ai/budgets/{budget}/raise": { entries: "write chat_settings", needs: "budget", who: "admin", row: { path: { budget: "{budget}" } } },
  "POST /api/v2/organizations": "create organization",
  [`PATCH ${O}/settings/workspace-sharing`]: { fresh: "organization", row: { body: { sharing_disabled: true } } },
  "POST /api/v2/tasks/{user}": { entries: "create task, create workspace, start workspace_build", who: "ada" },
  [`PATCH ${K}/input`]: { who: "ada" },
  // The rejected call is audited as a change of the task, not of its workspace.
  [`POST ${K}/pause`]: { entries: "stop workspace_build", refusedEntries: "write task" },
  [`POST ${K}/resume`]: { entries: "start workspace_build", refusedEntries: "write task" },
  [`DELETE ${K}`]: { entries: "delete task, delete workspace_build", refusedEntries: "delete task" },
  [`POST ${O}/groups`]: "create group",
  "PATCH /api/v2/groups/{group}": { row: { body: { display_name: "all of them" } } },
  [`POST ${O}/mcp-servers`]: "create mcp_server",
  "POST /api/v2/oauth2-provider/apps": "create oauth2_provider_app",
  "POST /api/v2/oauth2-provider/apps/{oauth2_app}/secrets": "create oauth2_provider_app_secret",
  [`POST ${U}/secrets`]: { entries: "create user_secret", who: "ada" },
  [`PATCH ${U}/secrets/{secret}`]: { who: "ada" },
  [`DELETE ${U}/secrets/{secret}`]: { who: "ada" },
  [`POST ${U}/skills`]: { entries: "create user_skill", who: "ada" },
  [`PATCH ${U}/skills/{skill}`]: { who: "ada" },
  [`DELETE ${U}/skills/{skill}`]: { who: "ada" },
  [`POST ${O}/provisionerkeys`]: "create provisioner_key",

  "POST /api/v2/files": "create file",
  [`POST ${O}/templateversions`]: "create template_version",
  [`POST ${O}/templates`]: { entries: "create template, write template_version", who: "admin", needs: "imported", row: { body: { name: "made", template_version_id: "{imported}" } } },
  [`PATCH ${T}/acl`]: { row: { body: { user_perms: { "{bob}": "admin" } } } },
  [`PATCH ${V}/cancel`]: { who: "admin", needs: "pendingVersion" },
  [`POST ${V}/archive`]: { who: "admin", needs: "spareVersion" },
  [`POST ${V}/unarchive`]: { needs: "archivedVersion" },
  [`POST ${T}/versions/archive`]: { entries: "write template_version", refusedEntries: "write template", needs: "unusedVersion", row: { body: { all: true } } },

  "POST /api/v2/users/{user}/workspaces": "create workspace, start workspace_build",
  [`POST ${O}/members/{user}/workspaces`]: "create workspace, start workspace_build",
  [`PUT ${W}/favorite`]: { who: "ada" },
  [`DELETE ${W}/favorite`]: { who: "ada", needs: "favorite" },
  [`PATCH ${W}/acl`]: { who: "ada", row: { body: { user_roles: { "{bob}": "use" } } } },
  [`DELETE ${W}/acl`]: { who: "ada", needs: "shared" },
  // The rejected call names a port that is already shared.
  [`POST ${W}/port-share`]: { entries: "create port_share", refusedEntries: "write port_share", row: { body: PORT_SHARE }, refusedRow: { body: REFUSED_PORT } },
  [`DELETE ${W}/port-share`]: { refusedRow: { body: REFUSED_PORT } },
  [`PUT ${W}/ttl`]: { row: { body: { ttl_ms: 7_200_000 } } },
  [`PUT ${W}/dormant`]: { entries: "write workspace, stop workspace_build", fresh: "workspace", row: { body: { dormant: true } } },
  [`PUT ${W}/extend`]: { needs: "running", row: { body: { deadline: "{later}" } } },
  [`POST ${W}/builds`]: { entries: "delete workspace_build", row: { body: { transition: "delete" } } },
  // A restart stops first; a rejected restart is audited as a start.
  [`POST ${W}/restart`]: { entries: "stop workspace_build", refusedEntries: "start workspace_build" },
  [`POST ${W}/wake`]: { needs: "stopped" },
  [`PATCH ${B}/cancel`]: { needs: "pendingBuild" },
  [`PUT ${B}/state`]: { row: { body: { state: "c2VjcmV0" } } },

  "POST /api/v2/chats": "create chat",
  [`PATCH ${C}/acl`]: { row: { body: { user_roles: { "{bob}": "read" } } } },
  [`POST ${C}/fork`]: { entries: "create chat", who: "ada" },
  [`DELETE ${C}`]: { entries: "write chat, delete chat", needs: "idleChat" },
  "POST /api/v2/chats/providers": "create ai_provider",
  "DELETE /api/v2/chats/providers/{provider}": "delete ai_provider, delete ai_model",
  "POST /api/v2/chats/model-configs": { entries: "create ai_model", who: "admin", row: { body: { provider: "demo", model: "second", enabled: true } } },
  [`DELETE ${LIMITS}/overrides/{user}`]: { entries: "write user_chat_settings", needs: "limits", who: "admin", row: { path: { user: "ada" } } },
  [`DELETE ${LIMITS}/group-overrides/{group}`]: { entries: "write chat_settings", needs: "limits", who: "admin", row: { path: { group: "{organization_id}" } } },
  [`PUT ${CONFIG}/user-debug-logging`]: { needs: "allowed" },
  [`PUT ${CONFIG}/user-prompt`]: "write user_chat_settings",
  [`PUT ${CONFIG}/user-permissions`]: "write user_chat_settings",
  [`PUT ${CONFIG}/user-compaction-thresholds/{model}`]: { entries: "write user_chat_settings", needs: "model", row: { path: { model: "{usable}" } } },
  [`DELETE ${CONFIG}/user-compaction-thresholds/{model}`]: { entries: "write user_chat_settings", needs: "threshold", row: { path: { model: "{usable}" } } },
  [`PUT ${O}/chats/model-overrides/{context}`]: { who: "admin", row: { path: { context: "explore" }, body: { mode: "chat_default" } } },
  [`PUT ${O}/members/{user}/chats/model-overrides/{context}`]: { needs: "allowed", row: { path: { user: "me", context: "root" } } },
  [`POST ${U}/deploy-keys`]: { entries: "create deploy_key", who: "ada" },
  [`DELETE ${U}/deploy-keys/{deploy_key}`]: { who: "ada" },
  [`PUT ${U}/dotfiles`]: { who: "ada" },
  [`DELETE ${U}/dotfiles`]: { who: "ada" },
  [`PUT ${U}/quiet-hours`]: { who: "ada" },
  "PUT /api/v2/notifications/settings": { row: { body: { notifier_paused: true } } },
  "PUT /api/v2/notifications/templates/{notification_template}/method": { row: { body: { method: "smtp" } } },
  "PUT /api/v2/connectionlog/retention": { row: { body: { days: 30 } } },
};

const AGENT_REPORT = "reports by agents are not changes by a user";
const CHAT_CONTENT = "chat content is recorded in the chat itself";
const NOTIFICATIONS = "a user's notifications are private";
const HOME_BACKUPS = "needs files: covered by test/api/workspaces/home-backups.test.ts";
const SNAPSHOTS = "needs files: covered by test/api/workspaces/snapshots.test.ts";
const REPOSITORY_PREBUILDS = "needs a Docker Engine: covered by test/repositories/prebuilds.test.ts";
const SECOND_FACTORS = "tested in test/api/factors";
const INSIDE_WORKSPACE = "happens inside the workspace, which is not audited";
const ACCOUNT_LINKS = "writes an entry once an account is linked: covered by links.test.ts";

/** Operations without an entry, with the reason. */
export const UNAUDITED: Readonly<Record<string, string>> = {
  "POST /api/v2/users/first": "creates a user: tested in without-request.test.ts",
  "POST /api/v2/users/validate-password": "changes nothing",
  "POST /api/v2/authcheck": "changes nothing",
  ...Object.fromEntries(
    [
      "POST /api/v2/invitations",
      "POST /api/v2/invitations/{invitation}/resend",
      "DELETE /api/v2/invitations/{invitation}",
      "POST /api/v2/invitations/accept",
    ].map((name) => [name, "covered by the tests in test/api/invitations"]),
  ),
  "POST /api/v2/invitations/look": "changes nothing",
  "POST /api/v2/invitations/accept/passkey/start": "stores nothing permanently",
  "POST /api/v2/invitations/accept/oidc": "stores nothing permanently",
  "POST /api/v2/users/oidc/{provider}/try": "stores nothing permanently",
  "POST /api/v2/users/oidc/{provider}/try/complete": "changes nothing",
  "POST /api/v2/oauth2-provider/authorize": "approval creates a key: tested in test/api/oauth2",
  "PUT /api/v2/notifications/inbox/mark-all-as-read": NOTIFICATIONS,
  "PUT /api/v2/notifications/inbox/{notification}/read-status": NOTIFICATIONS,
  "POST /api/v2/notifications/test": NOTIFICATIONS,
  [`PUT ${U}/notifications/preferences`]: NOTIFICATIONS,
  [`PUT ${U}/appearance`]: "a user's display settings are private",
  [`PUT ${U}/preferences`]: "a user's display settings are private",
  "POST /api/v2/applications/reconnecting-pty-signed-token": "stores nothing permanently",
  [`POST ${U}/webpush/subscription`]: NOTIFICATIONS,
  [`DELETE ${U}/webpush/subscription`]: NOTIFICATIONS,
  [`POST ${U}/webpush/test`]: NOTIFICATIONS,
  "POST /api/v2/users/login/second-factor": SECOND_FACTORS,
  "POST /api/v2/users/login/passkey/start": "stores nothing permanently",
  "POST /api/v2/users/login/passkey": SECOND_FACTORS,
  [`POST ${U}/passkeys/start`]: "stores nothing permanently",
  [`POST ${U}/passkeys`]: SECOND_FACTORS,
  [`PATCH ${U}/passkeys/{passkey}`]: SECOND_FACTORS,
  [`DELETE ${U}/passkeys/{passkey}`]: SECOND_FACTORS,
  [`POST ${U}/confirm/passkey/start`]: "stores nothing permanently",
  [`POST ${U}/confirm/passkey`]: "only elevates the session for 15 minutes",
  [`POST ${U}/confirm`]: "only elevates the session for 15 minutes",
  [`PUT ${U}/factors/required`]: SECOND_FACTORS,
  [`DELETE ${U}/factors`]: SECOND_FACTORS,
  [`DELETE ${U}/oidc-links`]: "covered by the tests in test/api/oidc",
  [`POST ${U}/factors/totp`]: "stores nothing permanently",
  [`POST ${U}/factors/totp/confirm`]: SECOND_FACTORS,
  [`DELETE ${U}/factors/totp`]: SECOND_FACTORS,
  [`POST ${U}/factors/recovery-codes`]: SECOND_FACTORS,
  ...Object.fromEntries(
    ["cloud-a", "aws", "cloud-b", "azure", "cloud-c", "google"].map((cloud) => [
      `POST /api/v2/workspaceagents/${cloud}-instance-identity`,
      "returns the token that the agent's build created",
    ]),
  ),
  "POST /api/v2/workspaceagents/me/log-source": AGENT_REPORT,
  "PATCH /api/v2/workspaceagents/me/logs": AGENT_REPORT,
  "PATCH /api/v2/workspaceagents/me/app-status": AGENT_REPORT,
  "POST /api/v2/workspaceagents/me/tasks/{task}/log-snapshot": AGENT_REPORT,
  [`POST ${A}/containers/devcontainers/{devcontainer}/recreate`]: INSIDE_WORKSPACE,
  [`DELETE ${A}/containers/devcontainers/{devcontainer}`]: INSIDE_WORKSPACE,
  [`POST ${A}/files`]: INSIDE_WORKSPACE,
  [`PATCH ${W}`]: "needs a setting that is off by default: tested in trail.test.ts",
  [`POST ${W}/restore`]: "needs files: covered by test/api/workspaces/trash.test.ts",
  [`POST ${W}/snapshots`]: SNAPSHOTS,
  [`POST ${W}/snapshots/{snapshot}/restore`]: SNAPSHOTS,
  [`DELETE ${W}/snapshots/{snapshot}`]: SNAPSHOTS,
  [`POST ${W}/home-backups`]: HOME_BACKUPS,
  [`POST ${W}/home-backups/{backup}/fetch`]: HOME_BACKUPS,
  [`DELETE ${W}/home-backups/{backup}`]: HOME_BACKUPS,
  [`POST ${W}/forks`]: SNAPSHOTS,
  [`POST ${W}/usage`]: "usage is counted, not audited",
  "POST /api/v2/external-auth/{externalauth}/start": "stores nothing permanently",
  "POST /api/v2/external-auth/{externalauth}/callback": ACCOUNT_LINKS,
  "POST /api/v2/external-auth/{externalauth}/device": ACCOUNT_LINKS,
  "DELETE /api/v2/external-auth/{externalauth}": ACCOUNT_LINKS,
  [`POST ${O}/mcp-servers/{mcp_server}/oauth2/start`]: "stores nothing permanently",
  [`POST ${O}/mcp-servers/{mcp_server}/try`]: "changes nothing",
  "POST /api/v2/hooks/consumer/try": "changes nothing",
  "POST /api/v2/deployment/backups": "copies existing data",
  "POST /api/v2/deployment/backups/{backup}/check": "changes nothing",
  [`DELETE ${O}/mcp-servers/{mcp_server}/oauth2`]: ACCOUNT_LINKS,
  [`POST ${V}/dynamic-parameters/evaluate`]: "changes nothing",
  "POST /api/v2/repositories/read": "changes nothing",
  "POST /api/v2/repositories/prebuilds": REPOSITORY_PREBUILDS,
  "DELETE /api/v2/repositories/prebuilds/{prebuild}": REPOSITORY_PREBUILDS,
  "POST /api/v2/repositories/prebuilds/{prebuild}/build": "starts the same build as a push event",
  "POST /api/v2/repositories/prebuilds/{prebuild}/push": "starts a build that the prebuild was added for",
  [`POST ${V}/dry-run`]: "stores nothing permanently",
  [`PATCH ${V}/dry-run/{job}/cancel`]: "stores nothing permanently",
  "POST /api/v2/chats/files": CHAT_CONTENT,
  [`POST ${C}/interrupt`]: CHAT_CONTENT,
  [`POST ${K}/send`]: CHAT_CONTENT,
  [`DELETE ${C}/queue/{queuedMessage}`]: CHAT_CONTENT,
  [`POST ${C}/queue/{queuedMessage}/promote`]: CHAT_CONTENT,
  [`POST ${C}/tool-results`]: CHAT_CONTENT,
  [`POST ${C}/permissions`]: CHAT_CONTENT,
  [`POST ${C}/reconcile-invalid`]: CHAT_CONTENT,
  [`POST ${C}/messages`]: CHAT_CONTENT,
  [`PATCH ${C}/messages/{message}`]: CHAT_CONTENT,
  [`POST ${C}/title/propose`]: CHAT_CONTENT,
  ...Object.fromEntries(
    ["trials", "trials/{trial}/stop", "trials/{trial}/keep", "trials/{trial}/discard"].map((path) => [
      `POST ${C}/${path}`,
      "needs files: covered by test/api/chats/trials.test.ts",
    ]),
  ),
  [`POST ${C}/compact`]: "needs a history: covered by context-control.test.ts",
  [`POST ${C}/clear`]: "needs a history: covered by context-control.test.ts",
  "POST /api/v2/chats/model-configs/{model_config}/try": "stores only the cost of the call",
  "POST /api/v2/chats/providers/try": "stores nothing permanently",
  [`PUT ${C}/context`]: CHAT_CONTENT,
};

/** Operations whose targets do not exist in the matrix's test data: rejected calls must leave no entry. */
export const WITHOUT_TARGET: ReadonlySet<string> = new Set([
  `DELETE ${O}/mcp-servers/{mcp_server}/oauth2`,
  "DELETE /api/v2/external-auth/{externalauth}",
  `POST ${W}/snapshots/{snapshot}/restore`,
  `DELETE ${W}/snapshots/{snapshot}`,
  `DELETE ${W}/home-backups/{backup}`,
  `PUT ${CONFIG}/user-compaction-thresholds/{model}`,
  `DELETE ${CONFIG}/user-compaction-thresholds/{model}`,
  "DELETE /api/v2/ai/budgets/{budget}",
  "POST /api/v2/ai/budgets/{budget}/raise",
  `DELETE ${LIMITS}/overrides/{user}`,
  `DELETE ${LIMITS}/group-overrides/{group}`,
]);

export const toExpectedAudit = (name: string): ExpectedAudit => {
  const expected = AUDITED[name] ?? {};
  return typeof expected === "string" ? { entries: expected } : expected;
};
