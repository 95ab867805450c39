// The calls that pages make, each with what it answers and takes: the types are those of the server's own schemas. A page that needs
// another call adds a line; test/web/calls.test.ts holds every line to the OpenAPI document.

import type { Backups } from "#schema/administration/backup.ts";
import type { ExternalAccounts } from "#schema/administration/external-accounts.ts";
import type { LocalModelServers } from "#schema/administration/local-models.ts";
import type { AuditLog, AuditRetention } from "#schema/audit.ts";
import type {
  Chat,
  CompactChat,
  CreateChat,
  CreatedMessage,
  CreateMessage,
  EditedMessage,
  EditMessage,
  ForkChat,
  MessagePage,
  UpdateChat,
} from "#schema/chats/chat.ts";
import type { ChatCost, UserCosts } from "#schema/chats/chat-cost.ts";
import type { ChatPermissions, PermissionAnswers } from "#schema/chats/chat-permissions.ts";
import type { HookConsumer, HookDispatch, TriedHookConsumer } from "#schema/chats/hook-dispatch.ts";
import type { CreateMcpServer, McpServerConfig, TriedMcpServer, UpdateMcpServer } from "#schema/chats/mcp-server.ts";
import type {
  AvailableModels,
  CreateModelConfig,
  ModelConfig,
  TriedModel,
  UpdateModelConfig,
} from "#schema/chats/model-config.ts";
import type { CreateModelProvider, ModelProvider, UpdateModelProvider } from "#schema/chats/model-provider.ts";
import type { UsageLimits, UsagePeriod } from "#schema/chats/usage-limit.ts";
import type { Appearance, TERMINAL_FONTS, UpdateAppearance } from "#schema/deployment/appearance.ts";
import type { DeploymentConfig } from "#schema/deployment/deployment-config.ts";
import type { HealthReport, HealthSettings } from "#schema/deployment/health.ts";
import type { BuildInsights, ChatInsights, TemplateInsights, UserActivity, UserLatency } from "#schema/insights.ts";
import type {
  Inbox,
  InboxNotification,
  NotificationPreference,
  NotificationTemplate,
  WebpushSubscription,
} from "#schema/notifications/notification.ts";
import type { NewProvisionerKey, ProvisionerDaemon, ProvisionerKey } from "#schema/templates/provisioner.ts";
import type { CreateTemplate, PatchTemplate, Template } from "#schema/templates/template.ts";
import type {
  CreateTemplateVersion,
  PlannedResource,
  Preset,
  TemplateExample,
  TemplateVariable,
  TemplateVersion,
} from "#schema/templates/template-version.ts";
import type { ApiKey, Session } from "#schema/users/api-key.ts";
import type { ExternalAuthList, ExternalAuthUnlinked, VersionExternalAuth } from "#schema/users/external-auth.ts";
import type { GitSshKey } from "#schema/users/git-ssh-key.ts";
import type { Member } from "#schema/users/member.ts";
import type { Organization } from "#schema/users/organization.ts";
import type { Passkey } from "#schema/users/passkey.ts";
import type { Factors, LoginRefused, TotpEnrolment } from "#schema/users/second-factor.ts";
import type { CreateUser, User } from "#schema/users/user.ts";
import type { CreateUserSkill, UpdateUserSkill, UserSkill } from "#schema/users/user-skill.ts";
import type { PatchWorkspaceAcl, WorkspaceAcl } from "#schema/workspaces/acl.ts";
import type { Build, BuildTimings, RestartWorkspace } from "#schema/workspaces/build.ts";
import type { CreateDryRun } from "#schema/workspaces/dry-run.ts";
import type { ProvisionerJob } from "#schema/workspaces/job.ts";
import type { ListeningPorts } from "#schema/workspaces/listening-port.ts";
import type { PortShare, UpsertPortShare } from "#schema/workspaces/port-share.ts";
import type { WorkspaceActivity } from "#schema/workspaces/schedule.ts";
import type { CreateWorkspace, Workspace, Workspaces } from "#schema/workspaces/workspace.ts";

type Call<Answer = void, Body = undefined> = { readonly answer: Answer; readonly body: Body };

type Looks = { readonly theme_preference: string; readonly terminal_font: (typeof TERMINAL_FONTS)[number] };

/** By method and path below /api/v2, with the names of path parameters behind colons. */
export interface Calls {
  "GET /buildinfo": Call<{ version: string; external_url: string; webpush_public_key: string }>;
  "GET /users/first": Call;
  "POST /users/first": Call<
    unknown,
    { setup_token: string; email: string; username: string; name?: string; password: string }
  >;
  "GET /users/authmethods": Call<{
    oidc: { providers: { name: string; icon: string; url: string }[] };
    passkey: { enabled: boolean };
  }>;
  "POST /users/login": Call<{ session_token: string } | LoginRefused, { email: string; password: string }>;
  "POST /users/login/second-factor": Call<unknown, { challenge: string; code: string }>;
  "POST /users/login/passkey": Call<unknown, { challenge: string; credential: unknown }>;
  "POST /users/logout": Call;
  "POST /users/validate-password": Call<{ valid: boolean; details: string }, { password: string }>;
  "GET /users/me": Call<User>;
  "PUT /users/me/profile": Call<User, { username: string; name: string }>;
  "POST /users/me/confirm": Call<unknown, { password: string; code?: string }>;
  "POST /users/me/confirm/passkey": Call<unknown, { challenge: string; credential: unknown }>;
  "GET /users/me/factors": Call<Factors>;
  "POST /users/me/factors/totp": Call<TotpEnrolment>;
  "POST /users/me/factors/totp/confirm": Call<{ recovery_codes: string[] }, { enrolment: string; code: string }>;
  "DELETE /users/me/factors/totp": Call<void, { password: string; code: string }>;
  "POST /users/me/factors/recovery-codes": Call<{ recovery_codes: string[] }>;
  "GET /users/me/passkeys": Call<Passkey[]>;
  "POST /users/me/passkeys": Call<
    { recovery_codes: string[] },
    { challenge: string; credential: unknown; name: string }
  >;
  "DELETE /users/me/passkeys/:passkey": Call;
  "GET /users/me/sessions": Call<Session[]>;
  "DELETE /users/me/sessions": Call;
  "DELETE /users/me/sessions/:session": Call;
  "GET /users/me/keys/tokens": Call<ApiKey[]>;
  "POST /users/me/keys/tokens": Call<
    { key: string },
    { token_name: string; lifetime: string; scopes?: string[]; allowed_addresses?: string[] }
  >;
  "GET /users/me/keys/tokens/tokenconfig": Call<{ max_token_lifetime: number }>;
  "DELETE /users/me/keys/:key": Call;
  "GET /auth/scopes": Call<{ external: string[] }>;
  "GET /users/me/gitsshkey": Call<GitSshKey>;
  "PUT /users/me/gitsshkey": Call<GitSshKey>;
  "GET /users/me/skills": Call<UserSkill[]>;
  "POST /users/me/skills": Call<UserSkill, CreateUserSkill>;
  "GET /users/me/skills/:skill": Call<UserSkill>;
  "PATCH /users/me/skills/:skill": Call<UserSkill, UpdateUserSkill>;
  "DELETE /users/me/skills/:skill": Call;
  "GET /chats/config/user-permissions": Call<{ permissions: ChatPermissions | null }>;
  "GET /notifications/inbox": Call<Inbox>;
  "PUT /notifications/inbox/:notification/read-status": Call<
    { notification: InboxNotification; unread_count: number },
    { is_read: boolean }
  >;
  "PUT /notifications/inbox/mark-all-as-read": Call;
  "GET /notifications/templates/system": Call<readonly NotificationTemplate[]>;
  "POST /notifications/test": Call;
  "POST /users/me/webpush/subscription": Call<void, WebpushSubscription>;
  "DELETE /users/me/webpush/subscription": Call<void, { endpoint: string }>;
  "GET /users/me/notifications/preferences": Call<readonly NotificationPreference[]>;
  "PUT /users/me/notifications/preferences": Call<
    readonly NotificationPreference[],
    { template_disabled_map: Record<string, boolean> }
  >;
  "PUT /chats/config/user-permissions": Call<void, { permissions: ChatPermissions | null }>;
  "GET /organizations": Call<Organization[]>;
  "POST /organizations": Call<Organization, { name: string; display_name?: string; description?: string }>;
  "PATCH /organizations/:organization": Call<
    Organization,
    { name?: string; display_name?: string; description?: string }
  >;
  "DELETE /organizations/:organization": Call;
  "GET /organizations/:organization/paginated-members": Call<{ members: Member[]; count: number }>;
  "GET /organizations/:organization/members/roles": Call<{ name: string; display_name: string; assignable: boolean }[]>;
  "POST /organizations/:organization/members/:user": Call<Member>;
  "DELETE /organizations/:organization/members/:user": Call;
  "PUT /organizations/:organization/members/:user/roles": Call<Member, { roles: string[] }>;
  "GET /organizations/:organization/settings/workspace-sharing": Call<{ sharing_disabled: boolean }>;
  "PATCH /organizations/:organization/settings/workspace-sharing": Call<unknown, { sharing_disabled: boolean }>;
  "GET /organizations/:organization/mcp-servers": Call<McpServerConfig[]>;
  "POST /organizations/:organization/mcp-servers": Call<McpServerConfig, CreateMcpServer>;
  "PATCH /organizations/:organization/mcp-servers/:server": Call<McpServerConfig, UpdateMcpServer>;
  "DELETE /organizations/:organization/mcp-servers/:server": Call;
  "POST /organizations/:organization/mcp-servers/:server/try": Call<TriedMcpServer>;
  "GET /organizations/:organization/provisionerdaemons": Call<ProvisionerDaemon[]>;
  "GET /organizations/:organization/provisionerkeys": Call<ProvisionerKey[]>;
  "POST /organizations/:organization/provisionerkeys": Call<
    NewProvisionerKey,
    { name: string; tags: Record<string, string> }
  >;
  "DELETE /organizations/:organization/provisionerkeys/:key": Call;
  "GET /appearance": Call<Appearance>;
  "PUT /appearance": Call<Appearance, UpdateAppearance>;
  "GET /users/me/appearance": Call<Looks>;
  "PUT /users/me/appearance": Call<Looks, Looks>;
  "GET /deployment/config": Call<DeploymentConfig>;
  "GET /deployment/external-auth": Call<ExternalAccounts>;
  "GET /deployment/backups": Call<Backups>;
  "POST /deployment/backups": Call<Backups>;
  "POST /deployment/backups/:backup/check": Call<Backups>;
  "GET /debug/health": Call<HealthReport>;
  "GET /debug/health/settings": Call<HealthSettings>;
  "PUT /debug/health/settings": Call<unknown, HealthSettings>;
  "GET /hooks/consumer": Call<HookConsumer>;
  "POST /hooks/consumer/try": Call<TriedHookConsumer>;
  "GET /hooks/dispatches": Call<{ dispatches: HookDispatch[]; has_more: boolean }>;
  "GET /chats/providers/local": Call<LocalModelServers>;
  "GET /chats/usage-limits": Call<UsageLimits>;
  "PUT /chats/usage-limits": Call<void, { spend_limit_micros: number | null; period: UsagePeriod }>;
  "PUT /chats/usage-limits/overrides/:user": Call<void, { spend_limit_micros: number }>;
  "DELETE /chats/usage-limits/overrides/:user": Call;
  "PUT /chats/usage-limits/group-overrides/:group": Call<void, { spend_limit_micros: number }>;
  "DELETE /chats/usage-limits/group-overrides/:group": Call;
  "GET /chats/config/default-permissions": Call<{ permissions: ChatPermissions | null }>;
  "PUT /chats/config/default-permissions": Call<void, { permissions: ChatPermissions | null }>;
  "GET /chats/config/plan-mode-instructions": Call<{ plan_mode_instructions: string }>;
  "PUT /chats/config/plan-mode-instructions": Call<void, { plan_mode_instructions: string }>;
  "GET /chats/config/system-prompt": Call<{
    system_prompt: string;
    include_default_system_prompt: boolean;
    default_system_prompt: string;
  }>;
  "PUT /chats/config/system-prompt": Call<void, { system_prompt: string; include_default_system_prompt: boolean }>;
  "GET /chats/config/retention-days": Call<{ retention_days: number }>;
  "PUT /chats/config/retention-days": Call<void, { retention_days: number }>;
  "GET /chats/config/auto-archive-days": Call<{ auto_archive_days: number }>;
  "PUT /chats/config/auto-archive-days": Call<void, { auto_archive_days: number }>;
  "GET /chats/config/personal-model-overrides": Call<{ allow_users: boolean }>;
  "PUT /chats/config/personal-model-overrides": Call<void, { allow_users: boolean }>;
  "PUT /audit/retention": Call<AuditRetention, AuditRetention>;
  "GET /workspaces": Call<Workspaces>;
  "GET /workspaces/:workspace": Call<Workspace>;
  "POST /users/:user/workspaces": Call<Workspace, CreateWorkspace>;
  "GET /workspaces/:workspace/builds": Call<Build[]>;
  "GET /workspaces/:workspace/activity": Call<WorkspaceActivity>;
  "GET /workspacebuilds/:workspacebuild/timings": Call<BuildTimings>;
  "GET /applications/host": Call<{ host: string }>;
  "POST /workspaces/:workspace/builds": Call<
    Build,
    {
      transition: "start" | "stop" | "delete";
      template_version_id?: string;
      rich_parameter_values?: { name: string; value: string }[];
      reason?: string;
      orphan?: boolean;
    }
  >;
  "POST /workspaces/:workspace/restart": Call<Build, RestartWorkspace>;
  "PUT /workspaces/:workspace/favorite": Call;
  "DELETE /workspaces/:workspace/favorite": Call;
  "PUT /workspaces/:workspace/dormant": Call<Workspace, { dormant: boolean }>;
  "PUT /workspaces/:workspace/extend": Call<unknown, { deadline: string }>;
  "PUT /workspaces/:workspace/ttl": Call<void, { ttl_ms: number | null }>;
  "PUT /workspaces/:workspace/autostart": Call<void, { schedule: string }>;
  "PUT /workspaces/:workspace/autoupdates": Call<void, { automatic_updates: string }>;
  "PATCH /workspaces/:workspace": Call<void, { name: string }>;
  "GET /workspaces/:workspace/acl": Call<WorkspaceAcl>;
  "PATCH /workspaces/:workspace/acl": Call<void, PatchWorkspaceAcl>;
  "GET /workspaces/:workspace/port-share": Call<{ shares: PortShare[] }>;
  "POST /workspaces/:workspace/port-share": Call<PortShare, UpsertPortShare>;
  "DELETE /workspaces/:workspace/port-share": Call<void, { agent_name: string; port: number }>;
  "GET /workspacebuilds/:workspacebuild": Call<Build>;
  "GET /workspacebuilds/:workspacebuild/parameters": Call<{ name: string; value: string }[]>;
  "PATCH /workspacebuilds/:workspacebuild/cancel": Call;
  "GET /workspaceagents/:workspaceagent/listening-ports": Call<ListeningPorts>;
  "GET /templates": Call<Template[]>;
  "GET /templates/examples": Call<TemplateExample[]>;
  "GET /templates/:template": Call<Template>;
  "PATCH /templates/:template": Call<Template, PatchTemplate>;
  "DELETE /templates/:template": Call;
  "GET /templates/:template/versions": Call<TemplateVersion[]>;
  "PATCH /templates/:template/versions": Call<unknown, { id: string }>;
  "POST /organizations/:organization/templates": Call<Template, CreateTemplate>;
  "POST /organizations/:organization/templateversions": Call<TemplateVersion, CreateTemplateVersion>;
  "POST /templateversions/:templateversion/archive": Call;
  "POST /templateversions/:templateversion/unarchive": Call;
  "GET /templateversions/:templateversion": Call<TemplateVersion>;
  "GET /templateversions/:templateversion/variables": Call<TemplateVariable[]>;
  "POST /templateversions/:templateversion/dry-run": Call<ProvisionerJob, CreateDryRun>;
  "GET /templateversions/:templateversion/dry-run/:job": Call<ProvisionerJob>;
  "GET /templateversions/:templateversion/dry-run/:job/resources": Call<PlannedResource[]>;
  "GET /templateversions/:templateversion/presets": Call<Preset[]>;
  "GET /templateversions/:templateversion/external-auth": Call<VersionExternalAuth[]>;
  "GET /external-auth": Call<ExternalAuthList>;
  "DELETE /external-auth/:provider": Call<ExternalAuthUnlinked>;
  "GET /chats": Call<Chat[]>;
  "GET /users": Call<{ users: User[]; count: number }>;
  "POST /users": Call<User, CreateUser>;
  "PUT /users/:user/roles": Call<User, { roles: string[] }>;
  "PUT /users/:user/status/:status": Call<User>;
  "PUT /users/:user/password": Call<void, { password: string; old_password?: string }>;
  "DELETE /users/:user/factors": Call;
  "DELETE /users/:user": Call;
  "GET /chats/providers": Call<ModelProvider[]>;
  "POST /chats/providers": Call<ModelProvider, CreateModelProvider>;
  "PATCH /chats/providers/:provider": Call<ModelProvider, UpdateModelProvider>;
  "DELETE /chats/providers/:provider": Call;
  "GET /chats/model-configs": Call<ModelConfig[]>;
  "POST /chats/model-configs": Call<ModelConfig, CreateModelConfig>;
  "PATCH /chats/model-configs/:model_config": Call<ModelConfig, UpdateModelConfig>;
  "POST /chats/model-configs/:model_config/try": Call<TriedModel>;
  "DELETE /chats/model-configs/:model_config": Call;
  "GET /insights/templates": Call<TemplateInsights>;
  "GET /insights/user-activity": Call<UserActivity>;
  "GET /insights/user-latency": Call<UserLatency>;
  "GET /insights/builds": Call<BuildInsights>;
  "GET /insights/chats": Call<ChatInsights>;
  "GET /chats/cost/users": Call<UserCosts>;
  "GET /audit": Call<{ audit_logs: AuditLog[]; count: number; count_cap: number }>;
  "GET /audit/retention": Call<AuditRetention>;
  "POST /chats": Call<Chat, CreateChat>;
  "GET /chats/models": Call<AvailableModels>;
  "GET /chats/:chat": Call<Chat>;
  "PATCH /chats/:chat": Call<void, UpdateChat>;
  "DELETE /chats/:chat": Call;
  "GET /chats/:chat/messages": Call<MessagePage>;
  "POST /chats/:chat/messages": Call<CreatedMessage, CreateMessage>;
  "PATCH /chats/:chat/messages/:message": Call<EditedMessage, EditMessage>;
  "POST /chats/:chat/interrupt": Call<Chat>;
  "DELETE /chats/:chat/queue/:queued": Call;
  "POST /chats/:chat/queue/:queued/promote": Call<unknown>;
  "POST /chats/:chat/permissions": Call<void, PermissionAnswers>;
  "POST /chats/:chat/fork": Call<Chat, ForkChat>;
  "POST /chats/:chat/compact": Call<Chat, CompactChat>;
  "POST /chats/:chat/clear": Call<Chat>;
  "PUT /chats/:chat/context": Call<Chat>;
  "GET /chats/:chat/cost": Call<ChatCost>;
}

export type Route = keyof Calls & string;
