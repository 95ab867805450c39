// What each operation that changes something is in the audit log, read by everything.test.ts. A new operation stands either in AUDITED,
// with the call that shows its entry, or in UNTOLD with the reason; until then the test fails (rule AU-2).
import type { Row } from "../edge/matrix-table.ts";
import type { CallerName, MakerName } from "../edge/matrix-world.ts";
import { A, B, C, K, O, T, U, V, W } from "../edge/paths.ts";
import type { Preparation } from "./preparations.ts";

export type Told = {
  /** `action resource_type` of the entries, in their order. */
  readonly is: string;
  /** What differs from the call that the authorization matrix makes. */
  readonly row?: Partial<Row>;
  readonly who?: CallerName;
  /** Makes what the call needs. */
  readonly needs?: Preparation;
  readonly fresh?: MakerName;
};

const CONFIG = "/api/v2/chats/config";
const LIMITS = "/api/v2/chats/usage-limits";
const share = { agent_name: "dev", port: 8080, protocol: "http", share_level: "owner" };

// biome-ignore format: a table
export const AUDITED: Readonly<Record<string, string | Told>> = {
  "POST /api/v2/users/login": { is: "login api_key", who: "stranger", row: { body: { email: "admin@example.com", password: "correct-horse-battery" } } },
  "POST /api/v2/users/logout": "logout api_key",
  "POST /api/v2/users": "create user",
  [`DELETE ${U}`]: "delete user",
  [`PUT ${U}/profile`]: { is: "write user", row: { body: { username: "ada", name: "Ada L." } } },
  [`PUT ${U}/status/{status}`]: { is: "write user", row: { path: { status: "suspend" } } },
  [`PUT ${U}/roles`]: { is: "write user", row: { body: { roles: ["auditor"] } } },
  [`PUT ${U}/password`]: { is: "write user", who: "admin", row: { path: { user: "admin" }, body: { old_password: "correct-horse-battery", password: "another-long-Secret" } } },
  [`PUT ${U}/gitsshkey`]: { is: "create git_ssh_key", row: { path: { user: "ada" } } },
  [`POST ${U}/keys`]: "create api_key",
  [`POST ${U}/keys/tokens`]: "create api_key",
  [`DELETE ${U}/keys/{key}`]: "delete api_key",
  [`PUT ${U}/keys/{key}/expire`]: "write api_key",
  [`PATCH ${U}/keys/tokens/{name}`]: "write api_key",
  [`DELETE ${U}/sessions`]: "delete api_key",
  [`DELETE ${U}/sessions/{session}`]: "delete api_key",

  "POST /api/v2/organizations": "create organization",
  [`PATCH ${O}`]: { is: "write organization", row: { body: { description: "all of us" } } },
  [`DELETE ${O}`]: "delete organization",
  [`POST ${O}/members/{user}`]: "create organization_member",
  [`DELETE ${O}/members/{user}`]: "delete organization_member",
  [`PUT ${O}/members/{user}/roles`]: { is: "write organization_member", row: { body: { roles: ["organization-auditor"] } } },
  [`PATCH ${O}/settings/workspace-sharing`]: { is: "write organization", fresh: "organization", row: { body: { sharing_disabled: true } } },
  "POST /api/v2/tasks/{user}": { is: "create task, create workspace, start workspace_build", who: "ada" },
  [`PATCH ${K}/input`]: { is: "write task", who: "ada" },
  [`POST ${K}/pause`]: "stop workspace_build",
  [`POST ${K}/resume`]: "start workspace_build",
  [`DELETE ${K}`]: "delete task, delete workspace_build",
  [`POST ${O}/groups`]: "create group",
  "PATCH /api/v2/groups/{group}": { is: "write group", row: { body: { display_name: "all of them" } } },
  "DELETE /api/v2/groups/{group}": "delete group",
  [`POST ${O}/mcp-servers`]: "create mcp_server",
  [`PATCH ${O}/mcp-servers/{mcp_server}`]: { is: "write mcp_server", row: { body: { display_name: "for all" } } },
  [`DELETE ${O}/mcp-servers/{mcp_server}`]: "delete mcp_server",
  [`POST ${U}/secrets`]: { is: "create user_secret", who: "ada" },
  [`PATCH ${U}/secrets/{secret}`]: { is: "write user_secret", who: "ada", row: { body: { description: "for the registry" } } },
  [`DELETE ${U}/secrets/{secret}`]: { is: "delete user_secret", who: "ada" },
  [`POST ${U}/skills`]: { is: "create user_skill", who: "ada" },
  [`PATCH ${U}/skills/{skill}`]: { is: "write user_skill", who: "ada", row: { body: { description: "how it is done" } } },
  [`DELETE ${U}/skills/{skill}`]: { is: "delete user_skill", who: "ada" },
  [`POST ${O}/provisionerkeys`]: "create provisioner_key",
  [`DELETE ${O}/provisionerkeys/{key}`]: "delete provisioner_key",

  "POST /api/v2/files": "create file",
  [`POST ${O}/templateversions`]: "create template_version",
  [`POST ${O}/templates`]: { is: "create template, write template_version", who: "admin", needs: "imported", row: { body: { name: "made", template_version_id: "{imported}" } } },
  [`PATCH ${T}`]: { is: "write template", row: { body: { description: "for all" } } },
  [`PATCH ${T}/acl`]: { is: "write template", row: { body: { user_perms: { "{bob}": "admin" } } } },
  [`DELETE ${T}`]: "delete template",
  [`PATCH ${T}/versions`]: "write template",
  [`PATCH ${V}`]: { is: "write template_version", row: { body: { message: "better" } } },
  [`PATCH ${V}/cancel`]: { is: "write template_version", who: "admin", needs: "pendingVersion" },
  [`POST ${V}/archive`]: { is: "write template_version", who: "admin", needs: "spareVersion" },
  [`POST ${V}/unarchive`]: { is: "write template_version", needs: "archivedVersion" },
  [`POST ${T}/versions/archive`]: { is: "write template_version", needs: "unusedVersion", row: { body: { all: true } } },

  "POST /api/v2/users/{user}/workspaces": "create workspace, start workspace_build",
  [`POST ${O}/members/{user}/workspaces`]: "create workspace, start workspace_build",
  [`PUT ${W}/favorite`]: { is: "write workspace", who: "ada" },
  [`DELETE ${W}/favorite`]: { is: "write workspace", who: "ada", needs: "favorite" },
  [`PATCH ${W}/acl`]: { is: "write workspace", who: "ada", row: { body: { user_roles: { "{bob}": "use" } } } },
  [`DELETE ${W}/acl`]: { is: "write workspace", who: "ada", needs: "shared" },
  [`POST ${W}/port-share`]: { is: "create port_share", row: { body: share } },
  [`DELETE ${W}/port-share`]: "delete port_share",
  [`PUT ${W}/autoupdates`]: { is: "write workspace", row: { body: { automatic_updates: "always" } } },
  [`PUT ${W}/autostart`]: { is: "write workspace", row: { body: { schedule: "CRON_TZ=UTC 30 9 * * 1-5" } } },
  [`PUT ${W}/ttl`]: { is: "write workspace", row: { body: { ttl_ms: 7_200_000 } } },
  [`PUT ${W}/dormant`]: { is: "write workspace, stop workspace_build", fresh: "workspace", row: { body: { dormant: true } } },
  [`PUT ${W}/extend`]: { is: "write workspace", needs: "running", row: { body: { deadline: "{later}" } } },
  [`POST ${W}/builds`]: { is: "delete workspace_build", row: { body: { transition: "delete" } } },
  [`POST ${W}/restart`]: { is: "stop workspace_build" },
  [`PATCH ${B}/cancel`]: { is: "write workspace_build", needs: "pendingBuild" },
  [`PUT ${B}/state`]: { is: "write workspace_build", row: { body: { state: "c2VjcmV0" } } },

  "POST /api/v2/chats": "create chat",
  [`PATCH ${C}`]: { is: "write chat", row: { body: { title: "Mending the roof" } } },
  [`PATCH ${C}/acl`]: { is: "write chat", row: { body: { user_roles: { "{bob}": "read" } } } },
  [`POST ${C}/fork`]: { is: "create chat", who: "ada" },
  [`DELETE ${C}`]: { is: "write chat, delete chat", needs: "idleChat" },
  "POST /api/v2/chats/providers": "create ai_provider",
  "PATCH /api/v2/chats/providers/{provider}": { is: "write ai_provider", row: { body: { display_name: "spare still" } } },
  "DELETE /api/v2/chats/providers/{provider}": "delete ai_provider, delete ai_model",
  "POST /api/v2/chats/model-configs": { is: "create ai_model", who: "admin", row: { body: { provider: "demo", model: "second", enabled: true } } },
  "PATCH /api/v2/chats/model-configs/{model_config}": { is: "write ai_model", row: { body: { display_name: "spare" } } },
  "DELETE /api/v2/chats/model-configs/{model_config}": "delete ai_model",
  [`PUT ${CONFIG}/auto-archive-days`]: "write chat_settings",
  [`PUT ${CONFIG}/retention-days`]: "write chat_settings",
  [`PUT ${CONFIG}/workspace-ttl`]: "write chat_settings",
  [`PUT ${CONFIG}/debug-retention-days`]: "write chat_settings",
  [`PUT ${CONFIG}/personal-model-overrides`]: "write chat_settings",
  [`PUT ${CONFIG}/plan-mode-instructions`]: "write chat_settings",
  [`PUT ${CONFIG}/default-permissions`]: { is: "write chat_settings", row: { body: { permissions: { default: "ask", rules: [] } } } },
  [`PUT ${CONFIG}/system-prompt`]: "write chat_settings",
  [`PUT ${CONFIG}/debug-logging`]: "write chat_settings",
  [`PUT ${LIMITS}`]: "write chat_settings",
  [`PUT ${LIMITS}/overrides/{user}`]: "write user_chat_settings",
  [`DELETE ${LIMITS}/overrides/{user}`]: { is: "write user_chat_settings", needs: "limits", who: "admin", row: { path: { user: "ada" } } },
  [`PUT ${LIMITS}/group-overrides/{group}`]: "write chat_settings",
  [`DELETE ${LIMITS}/group-overrides/{group}`]: { is: "write chat_settings", needs: "limits", who: "admin", row: { path: { group: "{organization_id}" } } },
  [`PUT ${CONFIG}/user-debug-logging`]: { is: "write user_chat_settings", needs: "allowed" },
  [`PUT ${CONFIG}/user-prompt`]: { is: "write user_chat_settings", row: { body: { custom_prompt: "Be brief." } } },
  [`PUT ${CONFIG}/user-permissions`]: "write user_chat_settings",
  [`PUT ${CONFIG}/user-compaction-thresholds/{model}`]: { is: "write user_chat_settings", needs: "model", row: { path: { model: "{usable}" } } },
  [`DELETE ${CONFIG}/user-compaction-thresholds/{model}`]: { is: "write user_chat_settings", needs: "threshold", row: { path: { model: "{usable}" } } },
  [`PUT ${O}/chats/model-overrides/{context}`]: { is: "write chat_settings", who: "admin", row: { path: { context: "explore" }, body: { mode: "chat_default" } } },
  [`PUT ${O}/members/{user}/chats/model-overrides/{context}`]: { is: "write user_chat_settings", needs: "allowed", row: { path: { user: "me", context: "root" } } },
  [`PUT ${U}/quiet-hours`]: { is: "write user", who: "ada", row: { body: { schedule: "CRON_TZ=UTC 45 21 * * *" } } },
  "PUT /api/v2/prebuilds/settings": { is: "write prebuilds_settings", row: { body: { reconciliation_paused: true } } },
  "PUT /api/v2/appearance": { is: "write appearance", row: { body: { application_name: "Harbour" } } },
  "PUT /api/v2/notifications/settings": { is: "write notifications_settings", row: { body: { notifier_paused: true } } },
  "PUT /api/v2/notifications/templates/{notification_template}/method": { is: "write notification_template", row: { body: { method: "smtp" } } },
  "PUT /api/v2/debug/health/settings": { is: "write health_settings", row: { body: { dismissed_healthchecks: ["disk"] } } },
  "PUT /api/v2/connectionlog/retention": { is: "write audit_settings", row: { body: { days: 30 } } },
  "PUT /api/v2/audit/retention": { is: "write audit_settings", row: { body: { days: 0, sign_in_days: 400, kinds: {} } } },
};

const REPORTS = "what an agent reports is no change of anybody's";
const SAID = "what is said in a chat, and what follows from it, is the chat's own record";
const TOLD_PEOPLE = "what somebody was told, and wants to be told, is theirs";
const FACTORS = "shown by the stories of test/api/factors";
const INSIDE = "happens inside of the workspace, where whoever works there does as they like";
const LINKED = "leaves an entry when an account is linked: shown by links.test.ts";

/** Operations without an entry, and why. */
export const UNTOLD: Readonly<Record<string, string>> = {
  "POST /api/v2/users/first": "makes a user: shown by without-request.test.ts",
  "POST /api/v2/users/validate-password": "changes nothing",
  "POST /api/v2/authcheck": "changes nothing",
  "PUT /api/v2/notifications/inbox/mark-all-as-read": TOLD_PEOPLE,
  "PUT /api/v2/notifications/inbox/{notification}/read-status": TOLD_PEOPLE,
  "POST /api/v2/notifications/test": TOLD_PEOPLE,
  [`PUT ${U}/notifications/preferences`]: TOLD_PEOPLE,
  [`PUT ${U}/appearance`]: "how somebody's own screen looks is theirs",
  [`PUT ${U}/preferences`]: "how somebody's own screen looks is theirs",
  "POST /api/v2/applications/reconnecting-pty-signed-token": "keeps nothing",
  [`POST ${U}/webpush/subscription`]: TOLD_PEOPLE,
  [`DELETE ${U}/webpush/subscription`]: TOLD_PEOPLE,
  [`POST ${U}/webpush/test`]: TOLD_PEOPLE,
  "POST /api/v2/users/login/second-factor": FACTORS,
  "POST /api/v2/users/login/passkey/start": "keeps nothing",
  "POST /api/v2/users/login/passkey": FACTORS,
  [`POST ${U}/passkeys/start`]: "keeps nothing",
  [`POST ${U}/passkeys`]: FACTORS,
  [`PATCH ${U}/passkeys/{passkey}`]: FACTORS,
  [`DELETE ${U}/passkeys/{passkey}`]: FACTORS,
  [`POST ${U}/confirm/passkey/start`]: "keeps nothing",
  [`POST ${U}/confirm/passkey`]: "changes nothing but what the session may do for 15 minutes",
  [`POST ${U}/confirm`]: "changes nothing but what the session may do for 15 minutes",
  [`PUT ${U}/factors/required`]: FACTORS,
  [`DELETE ${U}/factors`]: FACTORS,
  [`POST ${U}/factors/totp`]: "keeps nothing",
  [`POST ${U}/factors/totp/confirm`]: FACTORS,
  [`DELETE ${U}/factors/totp`]: FACTORS,
  [`POST ${U}/factors/recovery-codes`]: FACTORS,
  ...Object.fromEntries(
    ["cloud-a", "aws", "cloud-b", "azure", "cloud-c", "google"].map((cloud) => [
      `POST /api/v2/workspaceagents/${cloud}-instance-identity`,
      "gives an agent the token that its build has made",
    ]),
  ),
  "POST /api/v2/workspaceagents/me/log-source": REPORTS,
  "PATCH /api/v2/workspaceagents/me/logs": REPORTS,
  "PATCH /api/v2/workspaceagents/me/app-status": REPORTS,
  "POST /api/v2/workspaceagents/me/tasks/{task}/log-snapshot": REPORTS,
  [`POST ${A}/containers/devcontainers/{devcontainer}/recreate`]: INSIDE,
  [`DELETE ${A}/containers/devcontainers/{devcontainer}`]: INSIDE,
  [`POST ${A}/files`]: INSIDE,
  [`PATCH ${W}`]: "takes a setting that is off as a rule: shown by trail.test.ts",
  [`POST ${W}/usage`]: "use is counted, not told",
  "POST /api/v2/external-auth/{externalauth}/start": "keeps nothing",
  "POST /api/v2/external-auth/{externalauth}/callback": LINKED,
  "POST /api/v2/external-auth/{externalauth}/device": LINKED,
  "DELETE /api/v2/external-auth/{externalauth}": LINKED,
  [`POST ${O}/mcp-servers/{mcp_server}/oauth2/start`]: "keeps nothing",
  [`POST ${O}/mcp-servers/{mcp_server}/try`]: "changes nothing",
  "POST /api/v2/hooks/consumer/try": "changes nothing",
  "POST /api/v2/deployment/backups": "copies what there is",
  "POST /api/v2/deployment/backups/{backup}/check": "changes nothing",
  [`DELETE ${O}/mcp-servers/{mcp_server}/oauth2`]: LINKED,
  [`POST ${V}/dynamic-parameters/evaluate`]: "changes nothing",
  [`POST ${V}/dry-run`]: "makes nothing that lasts",
  [`PATCH ${V}/dry-run/{job}/cancel`]: "makes nothing that lasts",
  "POST /api/v2/chats/files": SAID,
  [`POST ${C}/interrupt`]: SAID,
  [`POST ${K}/send`]: SAID,
  [`DELETE ${C}/queue/{queuedMessage}`]: SAID,
  [`POST ${C}/queue/{queuedMessage}/promote`]: SAID,
  [`POST ${C}/tool-results`]: SAID,
  [`POST ${C}/permissions`]: SAID,
  [`POST ${C}/reconcile-invalid`]: SAID,
  [`POST ${C}/messages`]: SAID,
  [`PATCH ${C}/messages/{message}`]: SAID,
  [`POST ${C}/title/propose`]: SAID,
  [`POST ${C}/compact`]: "needs a history: its entry is shown by context-control.test.ts",
  [`POST ${C}/clear`]: "needs a history: its entry is shown by context-control.test.ts",
  "POST /api/v2/chats/model-configs/{model_config}/try": "keeps nothing but what it cost",
  [`PUT ${C}/context`]: SAID,
};

export const toldOf = (name: string): Told => {
  const told = AUDITED[name] ?? "";
  return typeof told === "string" ? { is: told } : told;
};
