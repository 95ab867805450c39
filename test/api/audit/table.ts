// The audit entries that everything.test.ts expects of operations, where the operation's declared `audit` is not enough. AUDITED lists
// operations that create something, whose rejections leave no entry, and operations that need another call or leave another entry. UNTOLD
// lists operations that leave no entry, with the reason (rules AU-2, AU-17).
import type { Row } from "../edge/matrix-table.ts";
import type { CallerName, MakerName } from "../edge/matrix-world.ts";
import { A, B, C, K, O, T, U, V, W } from "../edge/paths.ts";
import type { Preparation } from "./preparations.ts";

export type Told = {
  /** `action resource_type` of the entries, in order. If absent, the entry is the same as for a rejected call. */
  readonly is?: string;
  /** `action resource_type` of the entry for a rejected call, if it differs from `is`. */
  readonly refused?: string;
  /** Overrides for the authorization matrix's call. */
  readonly row?: Partial<Row>;
  /** Overrides for the call that is rejected. */
  readonly refusedRow?: Partial<Row>;
  readonly who?: CallerName;
  /** Creates what the call needs. */
  readonly needs?: Preparation;
  readonly fresh?: MakerName;
};

const CONFIG = "/api/v2/chats/config";
const LIMITS = "/api/v2/chats/usage-limits";
const share = { agent_name: "dev", port: 8080, protocol: "http", share_level: "owner" };

/** A port that is already shared before the first call. */
export const REFUSED_PORT = { agent_name: "dev", port: 9090, protocol: "http", share_level: "owner" };

// biome-ignore format: a table
export const AUDITED: Readonly<Record<string, string | Told>> = {
  "POST /api/v2/users/login": { is: "login api_key", who: "stranger", row: { body: { email: "admin@example.com", password: "correct-horse-battery" } } },
  "POST /api/v2/users/logout": "logout api_key",
  "POST /api/v2/users": "create user",
  [`PUT ${U}/profile`]: { row: { body: { username: "ada", name: "Ada L." } } },
  [`PUT ${U}/status/{status}`]: { row: { path: { status: "suspend" } } },
  [`PUT ${U}/roles`]: { row: { body: { roles: ["auditor"] } } },
  [`PUT ${U}/password`]: { who: "admin", row: { path: { user: "admin" }, body: { old_password: "correct-horse-battery", password: "another-long-Secret" } } },
  // The successful call creates a key pair; the rejected one would replace an existing pair.
  [`PUT ${U}/gitsshkey`]: { is: "create git_ssh_key", refused: "write git_ssh_key", row: { path: { user: "ada" } }, refusedRow: { path: { user: "{bob}" } } },
  [`POST ${U}/keys`]: "create api_key",
  [`POST ${U}/keys/tokens`]: "create api_key",
  [`POST ${A}/keys`]: "create api_key",
  [`DELETE ${U}/sessions`]: "delete api_key",
  [`POST ${A}/apps/{app}/link`]: { is: "create api_key", row: { path: { app: "editor" } } },

  "PUT /api/v2/ai/settings": { who: "admin", row: { body: { enabled: true, in_workspaces: true, names: [], default_names: {} } } },
  "PUT /api/v2/ai/agents/{coding_agent}": { who: "admin" },
  "DELETE /api/v2/ai/agents/{coding_agent}": { who: "admin", needs: "codingAgent", row: { path: { coding_agent: "mine" } } },
  "PUT /api/v2/ai/budgets": { who: "admin" },
  "DELETE /api/v2/ai/budgets/{budget}": { is: "write chat_settings", needs: "budget", who: "admin", row: { path: { budget: "{budget}" } } },
  "POST /api/v2/ai/budgets/{budget}/raise": { is: "write chat_settings", needs: "budget", who: "admin", row: { path: { budget: "{budget}" } } },
  "POST /api/v2/organizations": "create organization",
  [`PATCH ${O}`]: { row: { body: { description: "all of us" } } },
  [`PUT ${O}/members/{user}/roles`]: { row: { body: { roles: ["organization-auditor"] } } },
  [`PATCH ${O}/settings/workspace-sharing`]: { fresh: "organization", row: { body: { sharing_disabled: true } } },
  "POST /api/v2/tasks/{user}": { is: "create task, create workspace, start workspace_build", who: "ada" },
  [`PATCH ${K}/input`]: { who: "ada" },
  // The rejected call is audited as a change of the task, not of its workspace.
  [`POST ${K}/pause`]: { is: "stop workspace_build", refused: "write task" },
  [`POST ${K}/resume`]: { is: "start workspace_build", refused: "write task" },
  [`DELETE ${K}`]: { is: "delete task, delete workspace_build", refused: "delete task" },
  [`POST ${O}/groups`]: "create group",
  "PATCH /api/v2/groups/{group}": { row: { body: { display_name: "all of them" } } },
  [`POST ${O}/mcp-servers`]: "create mcp_server",
  [`PATCH ${O}/mcp-servers/{mcp_server}`]: { row: { body: { display_name: "for all" } } },
  "POST /api/v2/oauth2-provider/apps": "create oauth2_provider_app",
  "PUT /api/v2/oauth2-provider/apps/{oauth2_app}": { row: { body: { icon: "/emojis/1f310.png" } } },
  "POST /api/v2/oauth2-provider/apps/{oauth2_app}/secrets": "create oauth2_provider_app_secret",
  [`POST ${U}/secrets`]: { is: "create user_secret", who: "ada" },
  [`PATCH ${U}/secrets/{secret}`]: { who: "ada", row: { body: { description: "for the registry" } } },
  [`DELETE ${U}/secrets/{secret}`]: { who: "ada" },
  [`POST ${U}/skills`]: { is: "create user_skill", who: "ada" },
  [`PATCH ${U}/skills/{skill}`]: { who: "ada", row: { body: { description: "how it is done" } } },
  [`DELETE ${U}/skills/{skill}`]: { who: "ada" },
  [`POST ${O}/provisionerkeys`]: "create provisioner_key",

  "POST /api/v2/files": "create file",
  [`POST ${O}/templateversions`]: "create template_version",
  [`POST ${O}/templates`]: { is: "create template, write template_version", who: "admin", needs: "imported", row: { body: { name: "made", template_version_id: "{imported}" } } },
  [`PATCH ${T}`]: { row: { body: { description: "for all" } } },
  [`PATCH ${T}/acl`]: { row: { body: { user_perms: { "{bob}": "admin" } } } },
  [`PATCH ${V}`]: { row: { body: { message: "better" } } },
  [`PATCH ${V}/cancel`]: { who: "admin", needs: "pendingVersion" },
  [`POST ${V}/archive`]: { who: "admin", needs: "spareVersion" },
  [`POST ${V}/unarchive`]: { needs: "archivedVersion" },
  [`POST ${T}/versions/archive`]: { is: "write template_version", refused: "write template", needs: "unusedVersion", row: { body: { all: true } } },

  "POST /api/v2/users/{user}/workspaces": "create workspace, start workspace_build",
  [`POST ${O}/members/{user}/workspaces`]: "create workspace, start workspace_build",
  [`PUT ${W}/favorite`]: { who: "ada" },
  [`DELETE ${W}/favorite`]: { who: "ada", needs: "favorite" },
  [`PATCH ${W}/acl`]: { who: "ada", row: { body: { user_roles: { "{bob}": "use" } } } },
  [`DELETE ${W}/acl`]: { who: "ada", needs: "shared" },
  // The rejected call names a port that is already shared.
  [`POST ${W}/port-share`]: { is: "create port_share", refused: "write port_share", row: { body: share }, refusedRow: { body: REFUSED_PORT } },
  [`DELETE ${W}/port-share`]: { refusedRow: { body: REFUSED_PORT } },
  [`PUT ${W}/autoupdates`]: { row: { body: { automatic_updates: "always" } } },
  [`PUT ${W}/autostart`]: { row: { body: { schedule: "CRON_TZ=UTC 30 9 * * 1-5" } } },
  [`PUT ${W}/ttl`]: { row: { body: { ttl_ms: 7_200_000 } } },
  [`PUT ${W}/dormant`]: { is: "write workspace, stop workspace_build", fresh: "workspace", row: { body: { dormant: true } } },
  [`PUT ${W}/extend`]: { needs: "running", row: { body: { deadline: "{later}" } } },
  [`POST ${W}/builds`]: { is: "delete workspace_build", row: { body: { transition: "delete" } } },
  // A restart stops first; a rejected restart is audited as a start.
  [`POST ${W}/restart`]: { is: "stop workspace_build", refused: "start workspace_build" },
  [`POST ${W}/wake`]: { needs: "stopped" },
  [`PATCH ${B}/cancel`]: { needs: "pendingBuild" },
  [`PUT ${B}/state`]: { row: { body: { state: "c2VjcmV0" } } },

  "POST /api/v2/chats": "create chat",
  [`PATCH ${C}`]: { row: { body: { title: "Mending the roof" } } },
  [`PATCH ${C}/acl`]: { row: { body: { user_roles: { "{bob}": "read" } } } },
  [`POST ${C}/fork`]: { is: "create chat", who: "ada" },
  [`DELETE ${C}`]: { is: "write chat, delete chat", needs: "idleChat" },
  "POST /api/v2/chats/providers": "create ai_provider",
  "PATCH /api/v2/chats/providers/{provider}": { row: { body: { display_name: "spare still" } } },
  "DELETE /api/v2/chats/providers/{provider}": "delete ai_provider, delete ai_model",
  "POST /api/v2/chats/model-configs": { is: "create ai_model", who: "admin", row: { body: { provider: "demo", model: "second", enabled: true } } },
  "PATCH /api/v2/chats/model-configs/{model_config}": { row: { body: { display_name: "spare" } } },
  [`PUT ${CONFIG}/default-permissions`]: { row: { body: { permissions: { default: "ask", rules: [] } } } },
  [`DELETE ${LIMITS}/overrides/{user}`]: { is: "write user_chat_settings", needs: "limits", who: "admin", row: { path: { user: "ada" } } },
  [`DELETE ${LIMITS}/group-overrides/{group}`]: { is: "write chat_settings", needs: "limits", who: "admin", row: { path: { group: "{organization_id}" } } },
  [`PUT ${CONFIG}/user-debug-logging`]: { needs: "allowed" },
  [`PUT ${CONFIG}/user-prompt`]: { is: "write user_chat_settings", row: { body: { custom_prompt: "Be brief." } } },
  [`PUT ${CONFIG}/user-permissions`]: "write user_chat_settings",
  [`PUT ${CONFIG}/user-compaction-thresholds/{model}`]: { is: "write user_chat_settings", needs: "model", row: { path: { model: "{usable}" } } },
  [`DELETE ${CONFIG}/user-compaction-thresholds/{model}`]: { is: "write user_chat_settings", needs: "threshold", row: { path: { model: "{usable}" } } },
  [`PUT ${O}/chats/model-overrides/{context}`]: { who: "admin", row: { path: { context: "explore" }, body: { mode: "chat_default" } } },
  [`PUT ${O}/members/{user}/chats/model-overrides/{context}`]: { needs: "allowed", row: { path: { user: "me", context: "root" } } },
  [`POST ${U}/deploy-keys`]: { is: "create deploy_key", who: "ada" },
  [`DELETE ${U}/deploy-keys/{deploy_key}`]: { who: "ada" },
  [`PUT ${U}/dotfiles`]: { who: "ada", row: { body: { url: "https://git.example.com/ada/more" } } },
  [`DELETE ${U}/dotfiles`]: { who: "ada" },
  [`PUT ${U}/quiet-hours`]: { who: "ada", row: { body: { schedule: "CRON_TZ=UTC 45 21 * * *" } } },
  "PUT /api/v2/prebuilds/settings": { row: { body: { reconciliation_paused: true } } },
  "PUT /api/v2/appearance": { row: { body: { application_name: "Harbour" } } },
  "PUT /api/v2/notifications/settings": { row: { body: { notifier_paused: true } } },
  "PUT /api/v2/notifications/templates/{notification_template}/method": { row: { body: { method: "smtp" } } },
  "PUT /api/v2/debug/health/settings": { row: { body: { dismissed_healthchecks: ["disk"] } } },
  "PUT /api/v2/connectionlog/retention": { row: { body: { days: 30 } } },
  "PUT /api/v2/audit/retention": { row: { body: { days: 0, sign_in_days: 400, kinds: {} } } },
};

const REPORTS = "what an agent reports is no change of anybody's";
const SAID = "what is said in a chat, and what follows from it, is the chat's own record";
const TOLD_PEOPLE = "what somebody was told, and wants to be told, is theirs";
const HOME_BACKUPS = "needs files: its entry is shown by home-backups.test.ts of test/api/workspaces";
const SNAPSHOTS = "needs files: its entry is shown by snapshots.test.ts of test/api/workspaces";
const PREBUILT = "needs a Docker Engine: its entry is shown by prebuilds.test.ts of test/repositories";
const FACTORS = "shown by the stories of test/api/factors";
const INSIDE = "happens inside of the workspace, where whoever works there does as they like";
const LINKED = "leaves an entry when an account is linked: shown by links.test.ts";

/** Operations without an entry, with the reason. */
export const UNTOLD: Readonly<Record<string, string>> = {
  "POST /api/v2/users/first": "makes a user: shown by without-request.test.ts",
  "POST /api/v2/users/validate-password": "changes nothing",
  "POST /api/v2/authcheck": "changes nothing",
  ...Object.fromEntries(
    [
      "POST /api/v2/invitations",
      "POST /api/v2/invitations/{invitation}/resend",
      "DELETE /api/v2/invitations/{invitation}",
      "POST /api/v2/invitations/accept",
    ].map((name) => [name, "shown by the stories of test/api/invitations"]),
  ),
  "POST /api/v2/invitations/look": "changes nothing",
  "POST /api/v2/invitations/accept/passkey/start": "keeps nothing",
  "POST /api/v2/invitations/accept/oidc": "keeps nothing",
  "POST /api/v2/users/oidc/{provider}/try": "keeps nothing",
  "POST /api/v2/users/oidc/{provider}/try/complete": "changes nothing",
  "POST /api/v2/oauth2-provider/authorize": "a yes makes a key: shown by test/api/oauth2",
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
  [`DELETE ${U}/oidc-links`]: "shown by the stories of test/api/oidc",
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
  [`POST ${W}/restore`]: "needs files: its entry is shown by trash.test.ts of test/api/workspaces",
  [`POST ${W}/snapshots`]: SNAPSHOTS,
  [`POST ${W}/snapshots/{snapshot}/restore`]: SNAPSHOTS,
  [`DELETE ${W}/snapshots/{snapshot}`]: SNAPSHOTS,
  [`POST ${W}/home-backups`]: HOME_BACKUPS,
  [`POST ${W}/home-backups/{backup}/fetch`]: HOME_BACKUPS,
  [`DELETE ${W}/home-backups/{backup}`]: HOME_BACKUPS,
  [`POST ${W}/forks`]: SNAPSHOTS,
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
  "POST /api/v2/repositories/read": "changes nothing",
  "POST /api/v2/repositories/prebuilds": PREBUILT,
  "DELETE /api/v2/repositories/prebuilds/{prebuild}": PREBUILT,
  "POST /api/v2/repositories/prebuilds/{prebuild}/build": "builds what a push would build",
  "POST /api/v2/repositories/prebuilds/{prebuild}/push": "builds what the prebuild was added for",
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
  ...Object.fromEntries(
    ["trials", "trials/{trial}/stop", "trials/{trial}/keep", "trials/{trial}/discard"].map((path) => [
      `POST ${C}/${path}`,
      "needs files: its entry is shown by trials.test.ts of test/api/chats",
    ]),
  ),
  [`POST ${C}/compact`]: "needs a history: its entry is shown by context-control.test.ts",
  [`POST ${C}/clear`]: "needs a history: its entry is shown by context-control.test.ts",
  "POST /api/v2/chats/model-configs/{model_config}/try": "keeps nothing but what it cost",
  "POST /api/v2/chats/providers/try": "keeps nothing",
  [`PUT ${C}/context`]: SAID,
};

/** Operations whose targets do not exist in the matrix's test data: rejected calls must leave no entry. */
export const ABSENT: ReadonlySet<string> = new Set([
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

export const toldOf = (name: string): Told => {
  const told = AUDITED[name] ?? {};
  return typeof told === "string" ? { is: told } : told;
};
