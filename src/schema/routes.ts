// Written by `bun test/api/routes-table.ts` from the routes of the server; a test compares. What each call takes and answers, for clients
// in this repository: src/client.ts and the pages.
import type { Backups } from "./administration/backup.ts";
import type { ExternalAccounts } from "./administration/external-accounts.ts";
import type { LocalModelServers } from "./administration/local-models.ts";
import type { ServerLog } from "./administration/server-log.ts";
import type { WorkspaceAgent } from "./agents/agent.ts";
import type { DirectoryListing } from "./agents/agent-files.ts";
import type { PatchLogs as AddLogs, AgentLog } from "./agents/agent-log.ts";
import type { UploadedAgentFile } from "./agents/agent-upload.ts";
import type { AgentConnectionInfo } from "./agents/derp-map.ts";
import type { CreateLogSource, LogSource } from "./agents/log-source.ts";
import type { ReinitEvent } from "./agents/reinit.ts";
import type { Budget, PutBudget } from "./ai/budget.ts";
import type { AvailableAgents as AvailableCodingAgents, CodingAgent, CodingAgents } from "./ai/coding-agents.ts";
import type { AiUsage, GatewayCalls, GatewayRecording, GatewaySettings } from "./ai/gateway.ts";
import type { AuditLog, AuditRetention } from "./audit.ts";
import type {
  Chat,
  MessagePage as ChatMessages,
  Prompts as ChatPrompts,
  CompactChat,
  CreateChat,
  CreateMessage as CreateChatMessage,
  CreatedMessage as CreatedChatMessage,
  EditMessage as EditChatMessage,
  EditedMessage as EditedChatMessage,
  ForkChat,
  ToolResults,
  UpdateChat,
} from "./chats/chat.ts";
import type { ChatAcl, PatchChatAcl } from "./chats/chat-acl.ts";
import type { ChatApprovals } from "./chats/chat-approval.ts";
import type { ChatCost, CostSummary, UserCosts } from "./chats/chat-cost.ts";
import type { ChatRun, ChatRunWithSteps } from "./chats/chat-debug.ts";
import type { ChatDiff } from "./chats/chat-diff.ts";
import type { ChatPermissions, PermissionAnswers, PermissionMode } from "./chats/chat-permissions.ts";
import type { HookConsumer, HookDispatch, TriedHookConsumer } from "./chats/hook-dispatch.ts";
import type { CreateMcpServer, McpServerConfig, TriedMcpServer, UpdateMcpServer } from "./chats/mcp-server.ts";
import type {
  AvailableModels,
  CreateModelConfig,
  ModelConfig,
  TriedModel,
  UpdateModelConfig,
} from "./chats/model-config.ts";
import type {
  ModelOverride,
  OrganizationOverride,
  PutModelOverride,
  PutOrganizationOverride,
} from "./chats/model-override.ts";
import type {
  CreateModelProvider,
  ModelProvider,
  TriedProvider,
  TryModelProvider,
  UpdateModelProvider,
} from "./chats/model-provider.ts";
import type { UsageLimitStatus, UsageLimits } from "./chats/usage-limit.ts";
import type { ConnectionLog, ConnectionRetention } from "./connections.ts";
import type { Appearance, UpdateAppearance } from "./deployment/appearance.ts";
import type { AuthCheck } from "./deployment/authcheck.ts";
import type { DeploymentConfig } from "./deployment/deployment-config.ts";
import type { HealthReport, HealthSettings } from "./deployment/health.ts";
import type { DeploymentStats } from "./deployment/stats.ts";
import type { Generic } from "./generic.ts";
import type { BuildInsights, ChatInsights, TemplateInsights, UserActivity, UserLatency } from "./insights.ts";
import type {
  Inbox,
  InboxNotification,
  NotificationPreference,
  NotificationTemplate,
  WebpushSubscription,
} from "./notifications/notification.ts";
import type {
  CreateOAuth2App as CreateOAuth2ProviderAppRequest,
  OAuth2App as OAuth2ProviderApp,
  OAuth2Secret as OAuth2ProviderAppSecret,
  UpdateOAuth2App as UpdateOAuth2ProviderAppRequest,
} from "./oauth2/app.ts";
import type { AuthorizationRequest as OAuth2AuthorizationRequest, OAuth2Grant } from "./oauth2/grant.ts";
import type {
  CreateTask as CreateTaskRequest,
  Task,
  TaskInput as TaskInputRequest,
  TaskLogs,
  Tasks,
} from "./tasks/task.ts";
import type { UploadedFile } from "./templates/file.ts";
import type {
  NewProvisionerKey,
  ProvisionerDaemon,
  ProvisionerKey,
  ProvisionerKeyDaemons,
} from "./templates/provisioner.ts";
import type { RecentRepository, RepositoryAsked, RepositoryFound } from "./templates/repository.ts";
import type { CreateTemplate, PatchTemplate, Template } from "./templates/template.ts";
import type {
  TemplateAcl,
  TemplateAclAvailable,
  PatchTemplateAcl as UpdateTemplateAclRequest,
} from "./templates/template-acl.ts";
import type {
  CreateTemplateVersion,
  PlannedResource,
  TemplateExample,
  TemplateParameter,
  Preset as TemplatePreset,
  TemplateVariable,
  TemplateVersion,
} from "./templates/template-version.ts";
import type { ApiKey, Session } from "./users/api-key.ts";
import type { ApplicationHost, ExternalLink, WorkspaceKey } from "./users/application.ts";
import type {
  AgentExternalAuth,
  ExternalAuth,
  ExternalAuthDevice,
  ExternalAuthList,
  ExternalAuthUnlinked,
  VersionExternalAuth,
} from "./users/external-auth.ts";
import type { AgentGitSshKey, GitSshKey } from "./users/git-ssh-key.ts";
import type {
  CreateGroup as CreateGroupRequest,
  Group,
  GroupMember,
  PatchGroup as UpdateGroupRequest,
  WorkspaceQuota,
} from "./users/group.ts";
import type {
  AcceptInvitation,
  Invitations,
  Invited,
  InviteRequest,
  NewInvitation,
  OpenInvitation,
} from "./users/invitation.ts";
import type { Member as OrganizationMember } from "./users/member.ts";
import type { OidcProvider, OidcTrial } from "./users/oidc.ts";
import type { Organization } from "./users/organization.ts";
import type { CredentialJson, Passkey, PasskeyChallenge } from "./users/passkey.ts";
import type {
  QuietHours,
  UpdateUserPreferences as UpdateUserPreferencesRequest,
  UserPreferences,
} from "./users/quiet-hours.ts";
import type { Factors, TotpEnrolment } from "./users/second-factor.ts";
import type { MinimalUser, SessionToken, User } from "./users/user.ts";
import type {
  CreateUserSecret as CreateUserSecretRequest,
  UpdateUserSecret as UpdateUserSecretRequest,
  UserSecret,
} from "./users/user-secret.ts";
import type { CreateUserSkill, UpdateUserSkill, UserSkill } from "./users/user-skill.ts";
import type { PatchWorkspaceAcl, WorkspaceAcl } from "./workspaces/acl.ts";
import type {
  CreateBuild,
  RestartWorkspace,
  Build as WorkspaceBuild,
  BuildTimings as WorkspaceBuildTimings,
} from "./workspaces/build.ts";
import type { ContainerListing } from "./workspaces/container.ts";
import type { CreateDryRun } from "./workspaces/dry-run.ts";
import type { DynamicParameters, DynamicParametersRequest } from "./workspaces/dynamic-parameters.ts";
import type { ExternalAgentCredentials } from "./workspaces/external-agent.ts";
import type { CreateFork, Fork, Forks } from "./workspaces/fork.ts";
import type { MatchedProvisioners, ProvisionerJob, JobLog as ProvisionerJobLog } from "./workspaces/job.ts";
import type { ListeningPorts } from "./workspaces/listening-port.ts";
import type { PortShare, UpsertPortShare } from "./workspaces/port-share.ts";
import type { PrebuildSettings } from "./workspaces/prebuild-settings.ts";
import type { Resource as WorkspaceResource } from "./workspaces/resource.ts";
import type { WorkspaceActivity } from "./workspaces/schedule.ts";
import type { CreateSnapshot, Snapshot, Snapshots } from "./workspaces/snapshot.ts";
import type { RestoreWorkspace, Trash } from "./workspaces/trash.ts";
import type { WakeWorkspace as WakeWorkspaceRequest } from "./workspaces/wake.ts";
import type { CreateWorkspace, Workspace, Workspaces, WorkspaceUsage } from "./workspaces/workspace.ts";

/** What a call answers, what its body is (undefined: none, or it may be left away), and what its query can name. */
export type Route<Answer, Body, Query extends string> = {
  readonly answer: Answer;
  readonly body: Body;
  readonly query: Query;
};

/** A body that is no JSON. */
export type Bytes = string | Uint8Array | ReadableStream;

/** The routes below /api/v2, by the segments of their paths; `{}` stands for any one. */
export interface Routes {
  readonly ai: {
    readonly agents: {
      readonly GET: Route<CodingAgents, undefined, never>;
      readonly available: {
        readonly GET: Route<AvailableCodingAgents, undefined, never>;
      };
      readonly "{}": {
        readonly DELETE: Route<undefined, undefined, never>;
        readonly PUT: Route<
          CodingAgent,
          {
            display_name: string;
            icon: string;
            enabled: boolean;
            command: string;
            arguments: string[];
            variables: Record<string, string>;
            install_script: string;
            dialect: "anthropic" | "openai" | "google";
            auth_method: string;
            mode: string;
            instructions_file?: string;
            skills_folder?: string;
            own_instructions?: string[];
            starts_workspace?: boolean;
          },
          never
        >;
      };
    };
    readonly budgets: {
      readonly GET: Route<Budget[], undefined, never>;
      readonly PUT: Route<Budget, PutBudget, never>;
      readonly "{}": {
        readonly DELETE: Route<undefined, undefined, never>;
        readonly raise: {
          readonly POST: Route<undefined, { amount: number }, never>;
        };
      };
    };
    readonly calls: {
      readonly GET: Route<GatewayCalls, undefined, "user_id" | "workspace_id" | "before" | "limit">;
      readonly "{}": {
        readonly recording: {
          readonly GET: Route<GatewayRecording, undefined, never>;
        };
      };
    };
    readonly settings: {
      readonly GET: Route<GatewaySettings, undefined, never>;
      readonly PUT: Route<undefined, GatewaySettings, never>;
    };
    readonly usage: {
      readonly GET: Route<AiUsage, undefined, "by" | "user_id" | "start_date" | "end_date" | "month">;
    };
  };
  readonly appearance: {
    readonly GET: Route<Appearance, undefined, never>;
    readonly PUT: Route<Appearance, UpdateAppearance | undefined, never>;
  };
  readonly applications: {
    readonly "auth-redirect": {
      readonly GET: Route<unknown, undefined, "redirect_uri">;
    };
    readonly host: {
      readonly GET: Route<ApplicationHost, undefined, never>;
    };
    readonly "reconnecting-pty-signed-token": {
      readonly POST: Route<{ signed_token: string }, { url: string; agentID: string }, never>;
    };
  };
  readonly audit: {
    readonly GET: Route<
      { audit_logs: AuditLog[]; count: number; count_cap: number },
      undefined,
      "q" | "offset" | "after_id" | "limit"
    >;
    readonly export: {
      readonly GET: Route<unknown, undefined, "q" | "format">;
    };
    readonly retention: {
      readonly GET: Route<AuditRetention, undefined, never>;
      readonly PUT: Route<AuditRetention, AuditRetention, never>;
    };
    readonly watch: {
      readonly GET: Route<unknown, undefined, "q" | "after_id">;
    };
  };
  readonly auth: {
    readonly scopes: {
      readonly GET: Route<{ external: string[] }, undefined, never>;
    };
  };
  readonly authcheck: {
    readonly POST: Route<Record<string, boolean>, { checks: Record<string, AuthCheck> }, never>;
  };
  readonly buildinfo: {
    readonly GET: Route<
      {
        external_url: string;
        version: string;
        dashboard_url: string;
        workspace_proxy: boolean;
        agent_api_version: string;
        provisioner_api_version: string;
        upgrade_message: string;
        deployment_id: string;
        webpush_public_key: string;
        telemetry: boolean;
      },
      undefined,
      never
    >;
  };
  readonly chats: {
    readonly GET: Route<Chat[], undefined, "q" | "label" | "after_id" | "limit" | "offset">;
    readonly POST: Route<Chat, CreateChat, never>;
    readonly "by-workspace": {
      readonly GET: Route<Record<string, string>, undefined, "workspace_ids">;
    };
    readonly config: {
      readonly "auto-archive-days": {
        readonly GET: Route<{ auto_archive_days: number }, undefined, never>;
        readonly PUT: Route<undefined, { auto_archive_days: number }, never>;
      };
      readonly "debug-logging": {
        readonly GET: Route<{ allow_users: boolean; forced_by_deployment: boolean }, undefined, never>;
        readonly PUT: Route<undefined, { allow_users: boolean }, never>;
      };
      readonly "debug-retention-days": {
        readonly GET: Route<{ debug_retention_days: number }, undefined, never>;
        readonly PUT: Route<undefined, { debug_retention_days: number }, never>;
      };
      readonly "default-permissions": {
        readonly GET: Route<{ permissions: ChatPermissions | null }, undefined, never>;
        readonly PUT: Route<undefined, { permissions: ChatPermissions | null }, never>;
      };
      readonly "personal-model-overrides": {
        readonly GET: Route<{ allow_users: boolean }, undefined, never>;
        readonly PUT: Route<undefined, { allow_users: boolean }, never>;
      };
      readonly "plan-mode-instructions": {
        readonly GET: Route<{ plan_mode_instructions: string }, undefined, never>;
        readonly PUT: Route<undefined, { plan_mode_instructions: string }, never>;
      };
      readonly "retention-days": {
        readonly GET: Route<{ retention_days: number }, undefined, never>;
        readonly PUT: Route<undefined, { retention_days: number }, never>;
      };
      readonly "starting-permissions": {
        readonly GET: Route<
          { permission_mode: PermissionMode; permissions: ChatPermissions | null },
          undefined,
          "workspace_id"
        >;
      };
      readonly "system-prompt": {
        readonly GET: Route<
          { system_prompt: string; include_default_system_prompt: boolean; default_system_prompt: string },
          undefined,
          never
        >;
        readonly PUT: Route<undefined, { system_prompt: string; include_default_system_prompt?: boolean }, never>;
      };
      readonly "user-compaction-thresholds": {
        readonly GET: Route<{ thresholds: { model_config_id: string; threshold_percent: number }[] }, undefined, never>;
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly PUT: Route<undefined, { threshold_percent: number }, never>;
        };
      };
      readonly "user-debug-logging": {
        readonly GET: Route<
          { debug_logging_enabled: boolean; user_toggle_allowed: boolean; forced_by_deployment: boolean },
          undefined,
          never
        >;
        readonly PUT: Route<undefined, { debug_logging_enabled: boolean }, never>;
      };
      readonly "user-permissions": {
        readonly GET: Route<{ permissions: ChatPermissions | null }, undefined, never>;
        readonly PUT: Route<undefined, { permissions: ChatPermissions | null }, never>;
      };
      readonly "user-prompt": {
        readonly GET: Route<{ custom_prompt: string }, undefined, never>;
        readonly PUT: Route<{ custom_prompt: string }, { custom_prompt: string }, never>;
      };
      readonly "workspace-ttl": {
        readonly GET: Route<{ workspace_ttl_ms: number }, undefined, never>;
        readonly PUT: Route<undefined, { workspace_ttl_ms: number }, never>;
      };
    };
    readonly cost: {
      readonly users: {
        readonly GET: Route<UserCosts, undefined, "start_date" | "end_date" | "month" | "limit" | "offset" | "search">;
      };
      readonly "{}": {
        readonly summary: {
          readonly GET: Route<CostSummary, undefined, "start_date" | "end_date" | "month">;
        };
      };
    };
    readonly files: {
      readonly POST: Route<{ id: string }, Bytes, "organization">;
      readonly "{}": {
        readonly GET: Route<unknown, undefined, never>;
      };
    };
    readonly "model-configs": {
      readonly GET: Route<ModelConfig[], undefined, never>;
      readonly POST: Route<ModelConfig, CreateModelConfig, never>;
      readonly "{}": {
        readonly DELETE: Route<undefined, undefined, never>;
        readonly PATCH: Route<ModelConfig, UpdateModelConfig | undefined, never>;
        readonly try: {
          readonly POST: Route<TriedModel, undefined, never>;
        };
      };
    };
    readonly models: {
      readonly GET: Route<AvailableModels, undefined, never>;
    };
    readonly providers: {
      readonly GET: Route<ModelProvider[], undefined, never>;
      readonly POST: Route<ModelProvider, CreateModelProvider, never>;
      readonly local: {
        readonly GET: Route<LocalModelServers, undefined, never>;
      };
      readonly try: {
        readonly POST: Route<TriedProvider, TryModelProvider | undefined, never>;
      };
      readonly "{}": {
        readonly DELETE: Route<undefined, undefined, never>;
        readonly PATCH: Route<ModelProvider, UpdateModelProvider | undefined, never>;
      };
    };
    readonly "usage-limits": {
      readonly GET: Route<UsageLimits, undefined, never>;
      readonly PUT: Route<undefined, { spend_limit_micros: number | null; period: "day" | "week" | "month" }, never>;
      readonly "group-overrides": {
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly PUT: Route<undefined, { spend_limit_micros: number }, never>;
        };
      };
      readonly overrides: {
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly PUT: Route<undefined, { spend_limit_micros: number }, never>;
        };
      };
      readonly status: {
        readonly GET: Route<UsageLimitStatus, undefined, never>;
      };
    };
    readonly watch: {
      readonly GET: Route<undefined, undefined, never>;
    };
    readonly "{}": {
      readonly DELETE: Route<undefined, undefined, never>;
      readonly GET: Route<Chat, undefined, never>;
      readonly PATCH: Route<undefined, UpdateChat | undefined, never>;
      readonly acl: {
        readonly GET: Route<ChatAcl, undefined, never>;
        readonly PATCH: Route<undefined, PatchChatAcl | undefined, never>;
      };
      readonly clear: {
        readonly POST: Route<Chat, undefined, never>;
      };
      readonly compact: {
        readonly POST: Route<Chat, CompactChat | undefined, never>;
      };
      readonly context: {
        readonly PUT: Route<Chat, undefined, never>;
      };
      readonly cost: {
        readonly GET: Route<ChatCost, undefined, never>;
      };
      readonly debug: {
        readonly runs: {
          readonly GET: Route<ChatRun[], undefined, never>;
          readonly "{}": {
            readonly GET: Route<ChatRunWithSteps, undefined, never>;
          };
        };
      };
      readonly diff: {
        readonly GET: Route<ChatDiff, undefined, never>;
      };
      readonly fork: {
        readonly POST: Route<Chat, ForkChat | undefined, never>;
      };
      readonly interrupt: {
        readonly POST: Route<Chat, undefined, never>;
      };
      readonly messages: {
        readonly GET: Route<ChatMessages, undefined, "after_id" | "before_id" | "limit">;
        readonly POST: Route<CreatedChatMessage, CreateChatMessage, never>;
        readonly "{}": {
          readonly PATCH: Route<EditedChatMessage, EditChatMessage, never>;
        };
      };
      readonly permissions: {
        readonly GET: Route<ChatApprovals, undefined, never>;
        readonly POST: Route<undefined, PermissionAnswers, never>;
      };
      readonly prompts: {
        readonly GET: Route<ChatPrompts, undefined, "limit">;
      };
      readonly queue: {
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly promote: {
            readonly POST: Route<Generic, undefined, never>;
          };
        };
      };
      readonly "reconcile-invalid": {
        readonly POST: Route<Chat, undefined, never>;
      };
      readonly stream: {
        readonly GET: Route<unknown, undefined, "after_id">;
        readonly git: {
          readonly GET: Route<undefined, undefined, "agent">;
        };
      };
      readonly title: {
        readonly propose: {
          readonly POST: Route<{ title: string }, undefined, never>;
        };
      };
      readonly "tool-results": {
        readonly POST: Route<undefined, ToolResults, never>;
      };
    };
  };
  readonly connectionlog: {
    readonly GET: Route<
      { connection_logs: ConnectionLog[]; count: number; count_cap: number },
      undefined,
      "q" | "limit" | "offset" | "after_id"
    >;
    readonly retention: {
      readonly GET: Route<ConnectionRetention, undefined, never>;
      readonly PUT: Route<ConnectionRetention, ConnectionRetention, never>;
    };
  };
  readonly debug: {
    readonly coordinator: {
      readonly GET: Route<
        {
          peers: { id: string; addresses: string[]; preferred_derp: number; tunnels_to: string[] }[];
          counts: { peers: number; tunnels: number };
        },
        undefined,
        never
      >;
    };
    readonly health: {
      readonly GET: Route<HealthReport, undefined, "force">;
      readonly settings: {
        readonly GET: Route<HealthSettings, undefined, never>;
        readonly PUT: Route<HealthSettings, HealthSettings, never>;
      };
    };
    readonly tailnet: {
      readonly GET: Route<
        { relay: { clients: number; keys: number }; coordinator: { peers: number; tunnels: number } },
        undefined,
        never
      >;
    };
  };
  readonly deployment: {
    readonly backups: {
      readonly GET: Route<Backups, undefined, never>;
      readonly POST: Route<Backups, undefined, never>;
      readonly watch: {
        readonly GET: Route<unknown, undefined, never>;
      };
      readonly "{}": {
        readonly check: {
          readonly POST: Route<Backups, undefined, never>;
        };
      };
    };
    readonly config: {
      readonly GET: Route<DeploymentConfig, undefined, never>;
    };
    readonly "external-auth": {
      readonly GET: Route<ExternalAccounts, undefined, never>;
    };
    readonly logs: {
      readonly GET: Route<ServerLog, undefined, "level" | "area" | "search" | "after_id">;
      readonly watch: {
        readonly GET: Route<unknown, undefined, "level" | "area" | "search" | "after_id">;
      };
    };
    readonly ssh: {
      readonly GET: Route<
        { hostname_prefix: string; hostname_suffix: string; ssh_config_options: Record<string, string> },
        undefined,
        never
      >;
    };
    readonly stats: {
      readonly GET: Route<DeploymentStats, undefined, never>;
    };
    readonly "support-bundle": {
      readonly GET: Route<unknown, undefined, never>;
    };
  };
  readonly "derp-map": {
    readonly GET: Route<unknown, undefined, never>;
  };
  readonly entitlements: {
    readonly GET: Route<
      {
        features: Record<string, { entitlement: "entitled" | "not_entitled"; enabled: boolean }>;
        warnings: string[];
        errors: string[];
        has_license: boolean;
        trial: boolean;
        require_telemetry: boolean;
        refreshed_at: string;
      },
      undefined,
      never
    >;
  };
  readonly experiments: {
    readonly GET: Route<string[], undefined, never>;
    readonly available: {
      readonly GET: Route<{ safe: string[]; danger: string[] }, undefined, never>;
    };
  };
  readonly "external-auth": {
    readonly GET: Route<ExternalAuthList, undefined, never>;
    readonly "{}": {
      readonly DELETE: Route<ExternalAuthUnlinked, undefined, never>;
      readonly GET: Route<ExternalAuth, undefined, never>;
      readonly callback: {
        readonly POST: Route<undefined, { code: string; state: string }, never>;
      };
      readonly device: {
        readonly GET: Route<ExternalAuthDevice, undefined, never>;
        readonly POST: Route<undefined, { device_code: string }, never>;
      };
      readonly start: {
        readonly POST: Route<{ url: string }, undefined, never>;
      };
    };
  };
  readonly files: {
    readonly POST: Route<UploadedFile, Bytes, never>;
    readonly "{}": {
      readonly GET: Route<unknown, undefined, "format">;
    };
  };
  readonly groups: {
    readonly GET: Route<Group[], undefined, "organization" | "has_member" | "group_ids">;
    readonly "{}": {
      readonly DELETE: Route<Generic, undefined, never>;
      readonly GET: Route<Group, undefined, never>;
      readonly PATCH: Route<Group, UpdateGroupRequest | undefined, never>;
      readonly members: {
        readonly GET: Route<{ users: GroupMember[]; count: number }, undefined, "limit" | "offset">;
      };
    };
  };
  readonly hooks: {
    readonly consumer: {
      readonly GET: Route<HookConsumer, undefined, never>;
      readonly try: {
        readonly POST: Route<TriedHookConsumer, undefined, never>;
      };
    };
    readonly dispatches: {
      readonly GET: Route<
        { dispatches: HookDispatch[]; has_more: boolean },
        undefined,
        "event" | "result" | "chat_id" | "after_id" | "limit"
      >;
    };
  };
  readonly "init-script": {
    readonly "{}": {
      readonly "{}": {
        readonly GET: Route<string, undefined, never>;
      };
    };
  };
  readonly insights: {
    readonly builds: {
      readonly GET: Route<BuildInsights, undefined, "start_time" | "end_time" | "template_ids" | "interval">;
    };
    readonly chats: {
      readonly GET: Route<ChatInsights, undefined, "start_time" | "end_time" | "interval">;
    };
    readonly daus: {
      readonly GET: Route<
        { entries: { amount: number; date: string }[]; tz_hour_offset: number },
        undefined,
        "tz_offset"
      >;
    };
    readonly templates: {
      readonly GET: Route<
        TemplateInsights,
        undefined,
        "start_time" | "end_time" | "template_ids" | "interval" | "sections"
      >;
    };
    readonly "user-activity": {
      readonly GET: Route<UserActivity, undefined, "start_time" | "end_time" | "template_ids">;
    };
    readonly "user-latency": {
      readonly GET: Route<UserLatency, undefined, "start_time" | "end_time" | "template_ids">;
    };
    readonly "user-status-counts": {
      readonly GET: Route<
        { status_counts: Record<string, { count: number; date: string }[]> },
        undefined,
        "timezone" | "tz_offset"
      >;
    };
  };
  readonly invitations: {
    readonly GET: Route<Invitations, undefined, never>;
    readonly POST: Route<Invited, InviteRequest, never>;
    readonly accept: {
      readonly POST: Route<{ session_token: string; recovery_codes?: string[] }, AcceptInvitation, never>;
      readonly oidc: {
        readonly POST: Route<{ url: string }, { token: string; provider: string }, never>;
      };
      readonly passkey: {
        readonly start: {
          readonly POST: Route<PasskeyChallenge, { token: string; username: string }, never>;
        };
      };
    };
    readonly look: {
      readonly POST: Route<OpenInvitation, { token: string }, never>;
    };
    readonly "{}": {
      readonly DELETE: Route<undefined, undefined, never>;
      readonly resend: {
        readonly POST: Route<NewInvitation, { by?: "email" | "link" } | undefined, never>;
      };
    };
  };
  readonly licenses: {
    readonly GET: Route<Record<string, unknown>[], undefined, never>;
  };
  readonly notifications: {
    readonly "dispatch-methods": {
      readonly GET: Route<{ available: string[]; default: string }, undefined, never>;
    };
    readonly inbox: {
      readonly GET: Route<Inbox, undefined, "templates" | "targets" | "read_status" | "starting_before">;
      readonly "mark-all-as-read": {
        readonly PUT: Route<undefined, undefined, never>;
      };
      readonly watch: {
        readonly GET: Route<undefined, undefined, "templates" | "targets" | "read_status" | "format">;
      };
      readonly "{}": {
        readonly "read-status": {
          readonly PUT: Route<{ notification: InboxNotification; unread_count: number }, { is_read: boolean }, never>;
        };
      };
    };
    readonly settings: {
      readonly GET: Route<{ notifier_paused: boolean }, undefined, never>;
      readonly PUT: Route<{ notifier_paused: boolean }, { notifier_paused: boolean }, never>;
    };
    readonly templates: {
      readonly system: {
        readonly GET: Route<NotificationTemplate[], undefined, never>;
      };
      readonly "{}": {
        readonly method: {
          readonly PUT: Route<NotificationTemplate, { method: "" | "inbox" | "smtp" }, never>;
        };
      };
    };
    readonly test: {
      readonly POST: Route<undefined, undefined, never>;
    };
  };
  readonly "oauth2-provider": {
    readonly apps: {
      readonly GET: Route<OAuth2ProviderApp[], undefined, never>;
      readonly POST: Route<OAuth2ProviderApp, CreateOAuth2ProviderAppRequest, never>;
      readonly "{}": {
        readonly DELETE: Route<undefined, undefined, never>;
        readonly GET: Route<OAuth2ProviderApp, undefined, never>;
        readonly PUT: Route<OAuth2ProviderApp, UpdateOAuth2ProviderAppRequest | undefined, never>;
        readonly secrets: {
          readonly GET: Route<OAuth2ProviderAppSecret[], undefined, never>;
          readonly POST: Route<{ id: string; client_secret_full: string }, undefined, never>;
          readonly "{}": {
            readonly DELETE: Route<undefined, undefined, never>;
          };
        };
      };
    };
    readonly authorize: {
      readonly GET: Route<
        OAuth2AuthorizationRequest,
        undefined,
        | "client_id"
        | "redirect_uri"
        | "response_type"
        | "response_mode"
        | "scope"
        | "state"
        | "code_challenge"
        | "code_challenge_method"
        | "resource"
      >;
      readonly POST: Route<
        { redirect_to: string },
        {
          client_id: string;
          redirect_uri: string;
          response_type?: string;
          response_mode?: string;
          scope?: string;
          state?: string;
          code_challenge?: string;
          code_challenge_method?: string;
          resource?: string;
          approve: boolean;
        },
        never
      >;
    };
  };
  readonly organizations: {
    readonly GET: Route<Organization[], undefined, never>;
    readonly POST: Route<
      Organization,
      { name: string; display_name?: string; description?: string; icon?: string },
      never
    >;
    readonly "{}": {
      readonly DELETE: Route<Generic, undefined, never>;
      readonly GET: Route<Organization, undefined, never>;
      readonly PATCH: Route<
        Organization,
        { name?: string; display_name?: string; description?: string; icon?: string } | undefined,
        never
      >;
      readonly administrators: {
        readonly GET: Route<MinimalUser[], undefined, never>;
      };
      readonly chats: {
        readonly "model-overrides": {
          readonly GET: Route<{ overrides: OrganizationOverride[] }, undefined, never>;
          readonly "{}": {
            readonly PUT: Route<undefined, PutOrganizationOverride, never>;
          };
        };
      };
      readonly groups: {
        readonly GET: Route<Group[], undefined, never>;
        readonly POST: Route<Group, CreateGroupRequest, never>;
        readonly "{}": {
          readonly GET: Route<Group, undefined, never>;
        };
      };
      readonly "mcp-servers": {
        readonly GET: Route<McpServerConfig[], undefined, never>;
        readonly POST: Route<McpServerConfig, CreateMcpServer, never>;
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly GET: Route<McpServerConfig, undefined, never>;
          readonly PATCH: Route<McpServerConfig, UpdateMcpServer | undefined, never>;
          readonly oauth2: {
            readonly DELETE: Route<undefined, undefined, never>;
            readonly callback: {
              readonly GET: Route<string, undefined, "code" | "state" | "error">;
            };
            readonly start: {
              readonly POST: Route<{ url: string }, undefined, never>;
            };
          };
          readonly try: {
            readonly POST: Route<TriedMcpServer, undefined, never>;
          };
        };
      };
      readonly members: {
        readonly GET: Route<OrganizationMember[], undefined, never>;
        readonly roles: {
          readonly GET: Route<
            { name: string; display_name: string; organization_id?: string; assignable: boolean; built_in: boolean }[],
            undefined,
            never
          >;
        };
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly GET: Route<OrganizationMember, undefined, never>;
          readonly POST: Route<OrganizationMember, undefined, never>;
          readonly chats: {
            readonly "model-overrides": {
              readonly GET: Route<{ overrides: ModelOverride[] }, undefined, never>;
              readonly "{}": {
                readonly PUT: Route<undefined, PutModelOverride, never>;
              };
            };
          };
          readonly roles: {
            readonly PUT: Route<OrganizationMember, { roles: string[] }, never>;
          };
          readonly "workspace-quota": {
            readonly GET: Route<WorkspaceQuota, undefined, never>;
          };
          readonly workspaces: {
            readonly POST: Route<Workspace, CreateWorkspace, never>;
            readonly "available-users": {
              readonly GET: Route<MinimalUser[], undefined, "q" | "limit" | "offset">;
            };
          };
        };
      };
      readonly "paginated-members": {
        readonly GET: Route<{ members: OrganizationMember[]; count: number }, undefined, "limit" | "offset">;
      };
      readonly provisionerdaemons: {
        readonly GET: Route<ProvisionerDaemon[], undefined, never>;
        readonly serve: {
          readonly GET: Route<unknown, undefined, "name" | "tags" | "provisioners" | "places" | "version" | "slots">;
        };
      };
      readonly provisionerjobs: {
        readonly GET: Route<ProvisionerJob[], undefined, "status" | "initiator" | "limit">;
        readonly "{}": {
          readonly GET: Route<ProvisionerJob, undefined, never>;
          readonly logs: {
            readonly GET: Route<
              ProvisionerJobLog[],
              undefined,
              "before" | "after" | "follow" | "no_compression" | "format"
            >;
          };
        };
      };
      readonly provisionerkeys: {
        readonly GET: Route<ProvisionerKey[], undefined, never>;
        readonly POST: Route<NewProvisionerKey, { name: string; tags?: Record<string, string> }, never>;
        readonly daemons: {
          readonly GET: Route<ProvisionerKeyDaemons[], undefined, never>;
        };
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly GET: Route<ProvisionerKey, undefined, never>;
        };
      };
      readonly settings: {
        readonly "workspace-sharing": {
          readonly GET: Route<{ sharing_disabled: boolean }, undefined, never>;
          readonly PATCH: Route<{ sharing_disabled: boolean }, { sharing_disabled: boolean }, never>;
        };
      };
      readonly templates: {
        readonly GET: Route<Template[], undefined, "q">;
        readonly POST: Route<Template, CreateTemplate, never>;
        readonly "{}": {
          readonly GET: Route<Template, undefined, never>;
          readonly versions: {
            readonly "{}": {
              readonly GET: Route<TemplateVersion, undefined, never>;
              readonly previous: {
                readonly GET: Route<TemplateVersion, undefined, never>;
              };
            };
          };
        };
      };
      readonly templateversions: {
        readonly POST: Route<TemplateVersion, CreateTemplateVersion | undefined, never>;
      };
    };
  };
  readonly prebuilds: {
    readonly settings: {
      readonly GET: Route<PrebuildSettings, undefined, never>;
      readonly PUT: Route<PrebuildSettings, PrebuildSettings, never>;
    };
  };
  readonly regions: {
    readonly GET: Route<
      {
        regions: {
          id: string;
          name: string;
          display_name: string;
          icon_url: string;
          healthy: boolean;
          path_app_url: string;
          wildcard_hostname: string;
        }[];
      },
      undefined,
      never
    >;
  };
  readonly repositories: {
    readonly GET: Route<RecentRepository[], undefined, never>;
    readonly read: {
      readonly POST: Route<RepositoryFound, { repository: RepositoryAsked }, never>;
    };
  };
  readonly tailnet: {
    readonly GET: Route<unknown, undefined, "version" | "resume_token">;
  };
  readonly tasks: {
    readonly GET: Route<Tasks, undefined, "q" | "limit" | "offset">;
    readonly "{}": {
      readonly POST: Route<Task, CreateTaskRequest, never>;
      readonly "{}": {
        readonly DELETE: Route<Generic, undefined, never>;
        readonly GET: Route<Task, undefined, never>;
        readonly input: {
          readonly PATCH: Route<undefined, TaskInputRequest, never>;
        };
        readonly logs: {
          readonly GET: Route<TaskLogs, undefined, "after_id" | "limit">;
        };
        readonly pause: {
          readonly POST: Route<{ workspace_build: WorkspaceBuild }, undefined, never>;
        };
        readonly resume: {
          readonly POST: Route<{ workspace_build: WorkspaceBuild }, undefined, never>;
        };
        readonly send: {
          readonly POST: Route<undefined, TaskInputRequest, never>;
        };
      };
    };
  };
  readonly templates: {
    readonly GET: Route<Template[], undefined, "q">;
    readonly examples: {
      readonly GET: Route<TemplateExample[], undefined, never>;
    };
    readonly schema: {
      readonly GET: Route<Record<string, unknown>, undefined, never>;
    };
    readonly "{}": {
      readonly DELETE: Route<Generic, undefined, never>;
      readonly GET: Route<Template, undefined, never>;
      readonly PATCH: Route<Template, PatchTemplate | undefined, never>;
      readonly acl: {
        readonly GET: Route<TemplateAcl, undefined, never>;
        readonly PATCH: Route<Generic, UpdateTemplateAclRequest | undefined, never>;
        readonly available: {
          readonly GET: Route<TemplateAclAvailable, undefined, never>;
        };
      };
      readonly daus: {
        readonly GET: Route<
          { entries: { amount: number; date: string }[]; tz_hour_offset: number },
          undefined,
          "tz_offset"
        >;
      };
      readonly versions: {
        readonly GET: Route<TemplateVersion[], undefined, "limit" | "offset" | "after_id" | "include_archived">;
        readonly PATCH: Route<Generic, { id: string }, never>;
        readonly archive: {
          readonly POST: Route<{ template_id: string; archived_ids: string[] }, { all?: boolean } | undefined, never>;
        };
        readonly "{}": {
          readonly GET: Route<TemplateVersion, undefined, never>;
        };
      };
    };
  };
  readonly templateversions: {
    readonly "{}": {
      readonly GET: Route<TemplateVersion, undefined, never>;
      readonly PATCH: Route<TemplateVersion, { name?: string; message?: string } | undefined, never>;
      readonly archive: {
        readonly POST: Route<Generic, undefined, never>;
      };
      readonly cancel: {
        readonly PATCH: Route<Generic, undefined, never>;
      };
      readonly "dry-run": {
        readonly POST: Route<ProvisionerJob, CreateDryRun | undefined, never>;
        readonly "{}": {
          readonly GET: Route<ProvisionerJob, undefined, never>;
          readonly cancel: {
            readonly PATCH: Route<Generic, undefined, never>;
          };
          readonly logs: {
            readonly GET: Route<
              ProvisionerJobLog[],
              undefined,
              "before" | "after" | "follow" | "no_compression" | "format"
            >;
          };
          readonly "matched-provisioners": {
            readonly GET: Route<MatchedProvisioners, undefined, never>;
          };
          readonly resources: {
            readonly GET: Route<PlannedResource[], undefined, never>;
          };
        };
      };
      readonly "dynamic-parameters": {
        readonly GET: Route<unknown, undefined, "user_id">;
        readonly evaluate: {
          readonly POST: Route<DynamicParameters, DynamicParametersRequest, never>;
        };
      };
      readonly "external-auth": {
        readonly GET: Route<VersionExternalAuth[], undefined, never>;
      };
      readonly logs: {
        readonly GET: Route<
          ProvisionerJobLog[],
          undefined,
          "before" | "after" | "follow" | "no_compression" | "format"
        >;
      };
      readonly presets: {
        readonly GET: Route<TemplatePreset[], undefined, never>;
      };
      readonly resources: {
        readonly GET: Route<PlannedResource[], undefined, never>;
      };
      readonly "rich-parameters": {
        readonly GET: Route<TemplateParameter[], undefined, never>;
      };
      readonly unarchive: {
        readonly POST: Route<Generic, undefined, never>;
      };
      readonly variables: {
        readonly GET: Route<TemplateVariable[], undefined, never>;
      };
    };
  };
  readonly updatecheck: {
    readonly GET: Route<{ current: boolean; version: string; url: string }, undefined, never>;
  };
  readonly users: {
    readonly GET: Route<{ users: User[]; count: number }, undefined, "q" | "limit" | "offset" | "after_id">;
    readonly POST: Route<
      User,
      {
        email?: "" | string;
        username: string;
        name?: string;
        password?: string;
        service_account?: boolean;
        login_type?: "" | "password" | "oidc" | "none";
        user_status?: "active" | "dormant";
        organization_ids?: string[];
        roles?: string[];
      },
      never
    >;
    readonly authmethods: {
      readonly GET: Route<
        {
          terms_of_service_url: string;
          password: { enabled: boolean };
          passkey: { enabled: boolean };
          github: { enabled: boolean; default_provider_configured: boolean };
          oidc: {
            enabled: boolean;
            signInText: string;
            iconUrl: string;
            providers: { id: string; name: string; icon: string; url: string }[];
          };
        },
        undefined,
        never
      >;
    };
    readonly first: {
      readonly GET: Route<Generic, undefined, never>;
      readonly POST: Route<
        { user_id: string; organization_id: string },
        { setup_token?: string; email: string; username: string; name?: string; password: string; trial?: boolean },
        "setup_token"
      >;
    };
    readonly login: {
      readonly POST: Route<SessionToken, { email: string; password: string }, never>;
      readonly passkey: {
        readonly POST: Route<SessionToken, { challenge: string; credential: CredentialJson }, never>;
        readonly start: {
          readonly POST: Route<PasskeyChallenge, { second_factor?: string } | undefined, never>;
        };
      };
      readonly "second-factor": {
        readonly POST: Route<SessionToken, { challenge: string; code: string }, never>;
      };
    };
    readonly logout: {
      readonly POST: Route<{ message: string; sign_out_url?: string }, undefined, never>;
    };
    readonly oidc: {
      readonly GET: Route<OidcProvider[], undefined, never>;
      readonly callback: {
        readonly GET: Route<unknown, undefined, "redirect">;
      };
      readonly "{}": {
        readonly callback: {
          readonly GET: Route<unknown, undefined, never>;
        };
        readonly start: {
          readonly GET: Route<unknown, undefined, "redirect">;
        };
        readonly try: {
          readonly POST: Route<{ url: string }, undefined, never>;
          readonly complete: {
            readonly POST: Route<OidcTrial, { query: string }, never>;
          };
        };
      };
    };
    readonly roles: {
      readonly GET: Route<
        { name: string; display_name: string; organization_id?: string; assignable: boolean; built_in: boolean }[],
        undefined,
        never
      >;
    };
    readonly "validate-password": {
      readonly POST: Route<{ valid: boolean; details: string }, { password: string }, never>;
    };
    readonly "{}": {
      readonly DELETE: Route<Generic, undefined, never>;
      readonly GET: Route<User, undefined, never>;
      readonly appearance: {
        readonly GET: Route<
          {
            theme_preference: string;
            terminal_font: "" | "ibm-plex-mono" | "fira-code" | "source-code-pro" | "jetbrains-mono" | "geist-mono";
          },
          undefined,
          never
        >;
        readonly PUT: Route<
          {
            theme_preference: string;
            terminal_font: "" | "ibm-plex-mono" | "fira-code" | "source-code-pro" | "jetbrains-mono" | "geist-mono";
          },
          {
            theme_preference: string;
            terminal_font: "" | "ibm-plex-mono" | "fira-code" | "source-code-pro" | "jetbrains-mono" | "geist-mono";
          },
          never
        >;
      };
      readonly "autofill-parameters": {
        readonly GET: Route<{ name: string; value: string }[], undefined, "template_id">;
      };
      readonly confirm: {
        readonly POST: Route<undefined, { password: string; code?: string }, never>;
        readonly passkey: {
          readonly POST: Route<undefined, { challenge: string; credential: CredentialJson }, never>;
          readonly start: {
            readonly POST: Route<PasskeyChallenge, undefined, never>;
          };
        };
      };
      readonly factors: {
        readonly DELETE: Route<undefined, undefined, never>;
        readonly GET: Route<Factors, undefined, never>;
        readonly "recovery-codes": {
          readonly POST: Route<{ recovery_codes: string[] }, undefined, never>;
        };
        readonly required: {
          readonly PUT: Route<Factors, { required: boolean }, never>;
        };
        readonly totp: {
          readonly DELETE: Route<undefined, { password: string; code: string }, never>;
          readonly POST: Route<TotpEnrolment, undefined, never>;
          readonly confirm: {
            readonly POST: Route<{ recovery_codes: string[] }, { enrolment: string; code: string }, never>;
          };
        };
      };
      readonly gitsshkey: {
        readonly GET: Route<GitSshKey, undefined, never>;
        readonly PUT: Route<GitSshKey, undefined, never>;
      };
      readonly keys: {
        readonly POST: Route<{ key: string }, undefined, never>;
        readonly tokens: {
          readonly GET: Route<ApiKey[], undefined, "include_all" | "include_expired">;
          readonly POST: Route<
            { key: string },
            | {
                lifetime?: number | string;
                scope?: string;
                scopes?: string[];
                allowed_addresses?: string[];
                token_name?: string;
                allow_list?: { type: string; id: string }[];
              }
            | undefined,
            never
          >;
          readonly tokenconfig: {
            readonly GET: Route<{ max_token_lifetime: number }, undefined, never>;
          };
          readonly "{}": {
            readonly GET: Route<ApiKey, undefined, never>;
            readonly PATCH: Route<ApiKey, { scopes?: string[]; allowed_addresses?: string[] } | undefined, never>;
          };
        };
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly GET: Route<ApiKey, undefined, never>;
          readonly expire: {
            readonly PUT: Route<undefined, undefined, never>;
          };
        };
      };
      readonly notifications: {
        readonly preferences: {
          readonly GET: Route<NotificationPreference[], undefined, never>;
          readonly PUT: Route<NotificationPreference[], { template_disabled_map: Record<string, boolean> }, never>;
        };
      };
      readonly "oauth2-grants": {
        readonly GET: Route<OAuth2Grant[], undefined, never>;
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
        };
      };
      readonly "oidc-links": {
        readonly DELETE: Route<undefined, undefined, never>;
      };
      readonly organizations: {
        readonly GET: Route<Organization[], undefined, never>;
        readonly "{}": {
          readonly GET: Route<Organization, undefined, never>;
        };
      };
      readonly passkeys: {
        readonly GET: Route<Passkey[], undefined, never>;
        readonly POST: Route<
          { passkey: Passkey; recovery_codes: string[] },
          { challenge: string; name: string; credential: CredentialJson },
          never
        >;
        readonly start: {
          readonly POST: Route<PasskeyChallenge, undefined, never>;
        };
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly PATCH: Route<Passkey, { name: string }, never>;
        };
      };
      readonly password: {
        readonly PUT: Route<undefined, { old_password?: string; password: string }, never>;
      };
      readonly preferences: {
        readonly GET: Route<UserPreferences, undefined, never>;
        readonly PUT: Route<UserPreferences, UpdateUserPreferencesRequest, never>;
      };
      readonly profile: {
        readonly PUT: Route<User, { username: string; name?: string }, never>;
      };
      readonly "quiet-hours": {
        readonly GET: Route<QuietHours, undefined, never>;
        readonly PUT: Route<QuietHours, { schedule: string }, never>;
      };
      readonly roles: {
        readonly GET: Route<{ roles: string[]; organization_roles: Record<string, string[]> }, undefined, never>;
        readonly PUT: Route<User, { roles: string[] }, never>;
      };
      readonly secrets: {
        readonly GET: Route<UserSecret[], undefined, never>;
        readonly POST: Route<UserSecret, CreateUserSecretRequest, never>;
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly GET: Route<UserSecret, undefined, never>;
          readonly PATCH: Route<UserSecret, UpdateUserSecretRequest | undefined, never>;
        };
      };
      readonly sessions: {
        readonly DELETE: Route<undefined, undefined, never>;
        readonly GET: Route<Session[], undefined, never>;
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
        };
      };
      readonly skills: {
        readonly GET: Route<UserSkill[], undefined, never>;
        readonly POST: Route<UserSkill, CreateUserSkill, never>;
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly GET: Route<UserSkill, undefined, never>;
          readonly PATCH: Route<UserSkill, UpdateUserSkill | undefined, never>;
        };
      };
      readonly status: {
        readonly "{}": {
          readonly PUT: Route<User, undefined, never>;
        };
      };
      readonly webpush: {
        readonly subscription: {
          readonly DELETE: Route<undefined, { endpoint: string }, never>;
          readonly POST: Route<undefined, WebpushSubscription, never>;
        };
        readonly test: {
          readonly POST: Route<undefined, undefined, never>;
        };
      };
      readonly workspace: {
        readonly "{}": {
          readonly GET: Route<Workspace, undefined, "include_deleted">;
          readonly builds: {
            readonly "{}": {
              readonly GET: Route<WorkspaceBuild, undefined, never>;
            };
          };
        };
      };
      readonly workspaces: {
        readonly POST: Route<Workspace, CreateWorkspace, never>;
      };
    };
  };
  readonly workspaceagents: {
    readonly "aws-instance-identity": {
      readonly POST: Route<
        { session_token: string },
        { agent_name?: string; document: string; signature: string },
        never
      >;
    };
    readonly "azure-instance-identity": {
      readonly POST: Route<
        { session_token: string },
        { agent_name?: string; encoding: "pkcs7"; signature: string },
        never
      >;
    };
    readonly "cloud-a-instance-identity": {
      readonly POST: Route<
        { session_token: string },
        { agent_name?: string; document: string; signature: string },
        never
      >;
    };
    readonly "cloud-b-instance-identity": {
      readonly POST: Route<
        { session_token: string },
        { agent_name?: string; encoding: "pkcs7"; signature: string },
        never
      >;
    };
    readonly "cloud-c-instance-identity": {
      readonly POST: Route<{ session_token: string }, { agent_name?: string; json_web_token: string }, never>;
    };
    readonly connection: {
      readonly GET: Route<AgentConnectionInfo, undefined, never>;
    };
    readonly "google-instance-identity": {
      readonly POST: Route<{ session_token: string }, { agent_name?: string; json_web_token: string }, never>;
    };
    readonly me: {
      readonly "app-status": {
        readonly PATCH: Route<
          Generic,
          {
            app_slug: string;
            state: "working" | "idle" | "complete" | "failure";
            message?: string;
            uri?: string;
            icon?: string;
            needs_user_attention?: boolean;
          },
          never
        >;
      };
      readonly "external-auth": {
        readonly GET: Route<AgentExternalAuth, undefined, "match" | "id" | "listen">;
      };
      readonly gitauth: {
        readonly GET: Route<undefined, undefined, never>;
      };
      readonly gitsshkey: {
        readonly GET: Route<AgentGitSshKey, undefined, never>;
      };
      readonly "log-source": {
        readonly POST: Route<LogSource, CreateLogSource, never>;
      };
      readonly logs: {
        readonly PATCH: Route<Generic, AddLogs, never>;
      };
      readonly reinit: {
        readonly GET: Route<ReinitEvent, undefined, "wait">;
      };
      readonly rpc: {
        readonly GET: Route<unknown, undefined, "version" | "role">;
      };
      readonly tasks: {
        readonly "{}": {
          readonly "log-snapshot": {
            readonly POST: Route<undefined, { messages?: unknown[] } | undefined, "format">;
          };
        };
      };
      readonly tunnel: {
        readonly GET: Route<unknown, undefined, never>;
      };
    };
    readonly "{}": {
      readonly GET: Route<WorkspaceAgent, undefined, never>;
      readonly apps: {
        readonly "{}": {
          readonly link: {
            readonly POST: Route<ExternalLink, undefined, never>;
          };
        };
      };
      readonly connection: {
        readonly GET: Route<AgentConnectionInfo, undefined, never>;
      };
      readonly containers: {
        readonly GET: Route<ContainerListing, undefined, "label">;
        readonly devcontainers: {
          readonly "{}": {
            readonly DELETE: Route<undefined, undefined, never>;
            readonly recreate: {
              readonly POST: Route<Generic, undefined, never>;
            };
          };
        };
        readonly watch: {
          readonly GET: Route<unknown, undefined, never>;
        };
      };
      readonly coordinate: {
        readonly GET: Route<unknown, undefined, "version" | "resume_token">;
      };
      readonly files: {
        readonly GET: Route<DirectoryListing, undefined, "path">;
        readonly POST: Route<UploadedAgentFile, Bytes, "name" | "terminal" | "folder" | "replace">;
        readonly content: {
          readonly GET: Route<unknown, undefined, "path" | "limit">;
        };
      };
      readonly keys: {
        readonly POST: Route<WorkspaceKey, undefined, never>;
      };
      readonly "listening-ports": {
        readonly GET: Route<ListeningPorts, undefined, never>;
      };
      readonly logs: {
        readonly GET: Route<AgentLog[], undefined, "before" | "after" | "follow" | "no_compression" | "format">;
      };
      readonly pty: {
        readonly GET: Route<
          unknown,
          undefined,
          | "signed_token"
          | "reconnect"
          | "height"
          | "width"
          | "command"
          | "container"
          | "container_user"
          | "backend_type"
        >;
      };
      readonly "startup-logs": {
        readonly GET: Route<undefined, undefined, never>;
      };
      readonly "watch-metadata": {
        readonly GET: Route<unknown, undefined, never>;
      };
      readonly "watch-metadata-ws": {
        readonly GET: Route<undefined, undefined, never>;
      };
    };
  };
  readonly workspacebuilds: {
    readonly "{}": {
      readonly GET: Route<WorkspaceBuild, undefined, never>;
      readonly cancel: {
        readonly PATCH: Route<Generic, undefined, "expect_status">;
      };
      readonly logs: {
        readonly GET: Route<
          ProvisionerJobLog[],
          undefined,
          "before" | "after" | "follow" | "no_compression" | "format"
        >;
      };
      readonly parameters: {
        readonly GET: Route<{ name: string; value: string }[], undefined, never>;
      };
      readonly resources: {
        readonly GET: Route<WorkspaceResource[], undefined, never>;
      };
      readonly state: {
        readonly GET: Route<unknown, undefined, never>;
        readonly PUT: Route<undefined, { state: string }, "force">;
      };
      readonly timings: {
        readonly GET: Route<WorkspaceBuildTimings, undefined, never>;
      };
    };
  };
  readonly workspaces: {
    readonly GET: Route<Workspaces, undefined, "q" | "limit" | "offset" | "after_id">;
    readonly trash: {
      readonly GET: Route<Trash, undefined, never>;
    };
    readonly watch: {
      readonly GET: Route<unknown, undefined, "after_id">;
    };
    readonly "{}": {
      readonly GET: Route<Workspace, undefined, "include_deleted">;
      readonly PATCH: Route<undefined, { name?: string } | undefined, never>;
      readonly acl: {
        readonly DELETE: Route<undefined, undefined, never>;
        readonly GET: Route<WorkspaceAcl, undefined, never>;
        readonly PATCH: Route<undefined, PatchWorkspaceAcl | undefined, never>;
      };
      readonly activity: {
        readonly GET: Route<WorkspaceActivity, undefined, never>;
      };
      readonly autostart: {
        readonly PUT: Route<undefined, { schedule?: string | null } | undefined, never>;
      };
      readonly autoupdates: {
        readonly PUT: Route<undefined, { automatic_updates: "always" | "never" }, never>;
      };
      readonly builds: {
        readonly GET: Route<WorkspaceBuild[], undefined, "limit" | "offset" | "after_id" | "since">;
        readonly POST: Route<WorkspaceBuild, CreateBuild, never>;
      };
      readonly dormant: {
        readonly PUT: Route<Workspace, { dormant?: boolean } | undefined, never>;
      };
      readonly extend: {
        readonly PUT: Route<Generic, { deadline: string }, never>;
      };
      readonly "external-agent": {
        readonly "{}": {
          readonly credentials: {
            readonly GET: Route<ExternalAgentCredentials, undefined, never>;
          };
        };
      };
      readonly favorite: {
        readonly DELETE: Route<undefined, undefined, never>;
        readonly PUT: Route<undefined, undefined, never>;
      };
      readonly forks: {
        readonly GET: Route<Forks, undefined, never>;
        readonly POST: Route<Fork, CreateFork | undefined, never>;
        readonly "{}": {
          readonly GET: Route<Fork, undefined, never>;
        };
      };
      readonly "port-share": {
        readonly DELETE: Route<undefined, { agent_name: string; port: number }, never>;
        readonly GET: Route<{ shares: PortShare[] }, undefined, never>;
        readonly POST: Route<PortShare, UpsertPortShare, never>;
      };
      readonly "resolve-autostart": {
        readonly GET: Route<{ parameter_mismatch: boolean }, undefined, never>;
      };
      readonly restart: {
        readonly POST: Route<WorkspaceBuild, RestartWorkspace | undefined, never>;
      };
      readonly restore: {
        readonly POST: Route<WorkspaceBuild, RestoreWorkspace | undefined, never>;
      };
      readonly snapshots: {
        readonly GET: Route<Snapshots, undefined, never>;
        readonly POST: Route<Snapshot, CreateSnapshot | undefined, never>;
        readonly "{}": {
          readonly DELETE: Route<undefined, undefined, never>;
          readonly restore: {
            readonly POST: Route<WorkspaceBuild, undefined, never>;
          };
        };
      };
      readonly timings: {
        readonly GET: Route<WorkspaceBuildTimings, undefined, "include_deleted">;
      };
      readonly ttl: {
        readonly PUT: Route<undefined, { ttl_ms?: number | null } | undefined, never>;
      };
      readonly usage: {
        readonly POST: Route<undefined, WorkspaceUsage | undefined, never>;
      };
      readonly wake: {
        readonly POST: Route<WorkspaceBuild, WakeWorkspaceRequest | undefined, never>;
      };
      readonly watch: {
        readonly GET: Route<unknown, undefined, never>;
      };
      readonly "watch-ws": {
        readonly GET: Route<undefined, undefined, never>;
      };
    };
  };
}
