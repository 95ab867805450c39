// Wire shapes of the audit log (spec: Audit log entry; facts/platform 1.4 and 7).
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "./one-of.ts";
import { namedObject } from "./shape-names.ts";
import { User } from "./users/user.ts";

export const AUDIT_ACTIONS = [
  ...(["create", "write", "delete", "start", "stop", "login", "logout", "register", "request_password_reset"] as const),
  ...(["connect", "disconnect", "open", "close"] as const),
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** The types of changed resources. The last line is specific to Slipway. */
export const RESOURCE_TYPES = [
  ...(["template", "template_version", "user", "workspace", "workspace_build", "git_ssh_key", "api_key"] as const),
  ...(["group", "license", "convert_login", "health_settings", "notifications_settings"] as const),
  ...(["prebuilds_settings", "workspace_proxy", "organization", "oauth2_provider_app"] as const),
  ...(["oauth2_provider_app_secret", "custom_role", "organization_member", "notification_template"] as const),
  ...(["idp_sync_settings_organization", "idp_sync_settings_group", "idp_sync_settings_role"] as const),
  ...(["workspace_agent", "workspace_app", "task", "chat", "user_secret", "user_skill", "ai_seat"] as const),
  ...(["ai_provider", "ai_provider_key", "ai_gateway_key", "group_ai_budget"] as const),
  ...(["ai_model", "chat_settings", "user_chat_settings", "external_auth_link", "port_share", "mcp_server"] as const),
  ...([
    "provisioner_key",
    "file",
    "audit_settings",
    "second_factor",
    "oidc_link",
    "passkey",
    "appearance",
    "invitation",
    "workspace_snapshot",
    "repository_prebuild",
    "ai_call",
    "deploy_key",
  ] as const),
] as const;
export type ResourceType = (typeof RESOURCE_TYPES)[number];

const Uuid = (description: string) => t.String({ format: "uuid", description });
const Time = (description: string) => t.String({ format: "date-time", description });

export const AuditChange = namedObject("AuditChange", {
  old: t.Any({ description: "The zero value for created resources and for secrets." }),
  new: t.Any({ description: "The zero value for deleted resources and for secrets." }),
  secret: t.Boolean({ description: "The value changed; old and new are not recorded, or not yours to see." }),
});

/** The organization of the entry. */
export const LoggedOrganization = namedObject("LoggedOrganization", {
  id: Uuid("The organization."),
  name: t.String(),
  display_name: t.String(),
  icon: t.String(),
});

export const AuditLog = namedObject("AuditLog", {
  id: Uuid("The entry."),
  time: Time("When it happened."),
  organization_id: Uuid("Zero for what belongs to no organization."),
  organization: t.Optional(LoggedOrganization),
  user: t.Union([User, t.Null()], { description: "Null for the server itself, and for anonymous clients." }),
  action: oneOf(AUDIT_ACTIONS, "What was done."),
  resource_type: oneOf(RESOURCE_TYPES, "To what kind of thing."),
  resource_id: Uuid("Zero for what has none."),
  resource_target: t.String({ description: "Its name." }),
  resource_icon: t.String(),
  resource_link: t.String({
    description: "Where it can be seen; empty when there is no such page or it is deleted.",
  }),
  is_deleted: t.Boolean({ description: "Whether the resource has since been deleted." }),
  diff: t.Record(t.String(), AuditChange, { description: "By field; empty for tries that failed." }),
  additional_fields: t.Record(t.String(), t.Any(), {
    description: "Of builds: workspace, owner, number and reason.",
  }),
  description: t.String({ description: "A sentence with `{user}` and `{target}` to be filled in." }),
  status_code: t.Integer({ description: "Status of the response; 200 or 500 for actions of the server itself." }),
  request_id: Uuid("Of the request; zero where there was none."),
  ip: t.Union([t.String(), t.Null()], { description: "Null where there was no request." }),
  user_agent: t.String(),
});
export type AuditLog = Static<typeof AuditLog>;

export const AuditLogs = namedObject("AuditLogs", {
  audit_logs: t.Array(AuditLog),
  count: t.Integer({ description: "All that match; one above `count_cap` means more than that." }),
  count_cap: t.Integer({ description: "Up to the limit of the count." }),
});

/** Retention period of entries in days; 0 means forever. */
export const AuditRetention = namedObject("AuditRetention", {
  days: t.Integer({ minimum: 0, maximum: 36_500, description: "Retention of all entries that are not listed below." }),
  sign_in_days: t.Union([t.Integer({ minimum: 0, maximum: 36_500 }), t.Null()], {
    description: "Retention of sign-ins and sign-outs; null: the general retention.",
  }),
  kinds: t.Record(t.String(), t.Integer({ minimum: 0, maximum: 36_500 }), {
    description: "By resource_type, such as `workspace_build`.",
  }),
});
export type AuditRetention = Static<typeof AuditRetention>;
