// Wire shapes of the audit log (spec: Audit log entry; facts/platform 1.4 and 7).
import { type Static, Type as t } from "@sinclair/typebox";
import { iconUrl } from "./fields.ts";
import { oneOf } from "./one-of.ts";
import { namedObject } from "./shape-names.ts";
import { User } from "./users/user.ts";

export const AUDIT_ACTIONS = [
  ...(["create", "write", "delete", "start", "stop", "login", "logout", "register", "request_password_reset"] as const),
  ...(["connect", "disconnect", "open", "close"] as const),
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** The types of changed resources. The last two lists are specific to Slipway. */
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
  old: t.Any({ description: "The previous value; the zero value for created resources and for secrets." }),
  new: t.Any({ description: "The new value; the zero value for deleted resources and for secrets." }),
  secret: t.Boolean({
    description:
      "Whether the value is a secret. Its old and new values are not recorded, or the caller can't see them.",
  }),
});

/** The organization of the entry. */
export const LoggedOrganization = namedObject("LoggedOrganization", {
  id: Uuid("The organization's ID."),
  name: t.String(),
  display_name: t.String(),
  icon: iconUrl,
});

export const AuditLog = namedObject("AuditLog", {
  id: Uuid("The ID of the log entry."),
  time: Time("When the action happened."),
  organization_id: Uuid("The ID of the resource's organization; all zeros if it belongs to none."),
  organization: t.Optional({
    ...LoggedOrganization,
    description: "The organization of the resource; absent if it belongs to none.",
  }),
  user: t.Union([User, t.Null()], {
    description: "The user who acted; null for the server itself and for anonymous clients.",
  }),
  action: oneOf(AUDIT_ACTIONS, "The action that was performed or attempted."),
  resource_type: oneOf(RESOURCE_TYPES, "The type of the affected resource."),
  resource_id: Uuid("The ID of the affected resource; all zeros if it has none."),
  resource_target: t.String({ description: "The name of the affected resource." }),
  resource_icon: t.String({ description: "The URL or path of the resource's icon; may be empty." }),
  resource_link: t.String({
    description: "The link to the resource's page; empty if it has no page or was deleted.",
  }),
  is_deleted: t.Boolean({ description: "Whether the resource has since been deleted." }),
  diff: t.Record(t.String(), AuditChange, { description: "The changed fields, by name; empty for failed attempts." }),
  additional_fields: t.Record(t.String(), t.Any(), {
    description: "For builds: the workspace, its owner, the build number and the reason.",
  }),
  description: t.String({
    description: "A sentence that describes the action, with the placeholders `{user}` and `{target}`.",
  }),
  status_code: t.Integer({
    description: "The HTTP status of the response; 200 or 500 for actions of the server itself.",
  }),
  request_id: Uuid("The ID of the request; all zeros if there was no request."),
  ip: t.Union([t.String(), t.Null()], { description: "The client's IP address; null if there was no request." }),
  user_agent: t.String({ description: "The client's user agent; empty if there was no request." }),
});
export type AuditLog = Static<typeof AuditLog>;

export const AuditLogs = namedObject("AuditLogs", {
  audit_logs: t.Array(AuditLog, { description: "The entries, newest first." }),
  count: t.Integer({
    description: "The number of matching entries. A value of `count_cap` + 1 means that there are more.",
  }),
  count_cap: t.Integer({ description: "The maximum number of entries that are counted." }),
});

/** Retention period of entries in days; 0 means forever. */
export const AuditRetention = namedObject("AuditRetention", {
  days: t.Integer({
    minimum: 0,
    maximum: 36_500,
    description: "How many days entries of all other kinds are kept; 0 keeps them forever.",
  }),
  sign_in_days: t.Union([t.Integer({ minimum: 0, maximum: 36_500 }), t.Null()], {
    description: "How many days sign-ins and sign-outs are kept; null applies `days`.",
  }),
  kinds: t.Record(t.String(), t.Integer({ minimum: 0, maximum: 36_500 }), {
    description: "How many days entries of a `resource_type` are kept, such as `workspace_build`.",
  }),
});
export type AuditRetention = Static<typeof AuditRetention>;
