// Presents an audit log entry: a sentence describing the action, a link to the resource, and whether it still exists (facts/platform 7).
// Pure.
import { toRfc3339 } from "#base/clock.ts";
import { isUuid, NIL_UUID } from "#base/ids.ts";
import type { AuditEntryView, AuditRow } from "#db/reports/audit/search.ts";
import type { AuditAction, AuditLog, ResourceType } from "#schema/audit.ts";
import { presentUser } from "../users/present.ts";

const VERBS: Readonly<Record<AuditAction, string>> = {
  create: "created",
  write: "updated",
  delete: "deleted",
  start: "started",
  stop: "stopped",
  login: "logged in",
  logout: "logged out",
  register: "registered",
  request_password_reset: "password reset requested",
  connect: "connected",
  disconnect: "disconnected",
  open: "opened",
  close: "closed",
};

const NAMES: Partial<Record<ResourceType, string>> = {
  workspace_build: "workspace",
  ai_call: "recording of model call",
  api_key: "token",
  convert_login: "login type conversion",
  oauth2_provider_app: "oauth2 app",
  health_settings: "health_settings",
  notifications_settings: "notifications_settings",
  prebuilds_settings: "prebuilds_settings",
  idp_sync_settings_organization: "settings",
  idp_sync_settings_group: "settings",
  idp_sync_settings_role: "settings",
};

const formatName = (type: ResourceType): string => NAMES[type] ?? type.replaceAll("_", " ");

type DescribedEntry = Pick<AuditRow, "action" | "resource_type" | "status_code" | "diff">;

/** Returns a sentence with `{user}` and `{target}`, to be filled in by the client. */
export const formatDescription = ({ action, resource_type, status_code, diff }: DescribedEntry): string => {
  const subject = action === "request_password_reset" ? "" : "{user} ";
  const fields = Object.keys(diff);
  if (resource_type === "chat" && action === "write" && status_code < 300 && fields.length > 0) {
    const hasOnly = (...names: string[]) => fields.every((field) => names.includes(field));
    if (hasOnly("archived"))
      return `${subject}${diff.archived?.new === true ? "archived" : "unarchived"} chat {target}`;
    if (hasOnly("user_acl", "group_acl")) return `${subject}updated sharing for chat {target}`;
  }
  return `${subject}${formatVerb(action, status_code)}${formatObject(action, resource_type)}`;
};

const formatVerb = (action: AuditAction, status: number): string => {
  if (status === 303) return `was redirected attempting to ${action}`;
  return status >= 400 ? `unsuccessfully attempted to ${action}` : VERBS[action];
};

const formatObject = (action: AuditAction, type: ResourceType): string => {
  if (type === "api_key" && ["login", "logout", "register"].includes(action)) return "";
  if (type === "git_ssh_key") return ` the ${formatName(type)}`;
  if (action === "request_password_reset") return " for {target}";
  return ` ${formatName(type)}${type === "convert_login" ? " to" : ""} {target}`;
};

const WORKSPACE_RESOURCES: readonly ResourceType[] = [
  "workspace",
  "workspace_build",
  "workspace_agent",
  "workspace_app",
  "port_share",
  "workspace_snapshot",
];

const toLink = ({ entry, workspace, owner }: AuditEntryView): string => {
  const workspacePath = workspace && owner ? `/@${owner.username}/${workspace.name}` : "";
  if (entry.resource_type === "template") return `/templates/${entry.resource_target}`;
  if (entry.resource_type === "user") return `/users?filter=${encodeURIComponent(entry.resource_target)}`;
  if (["workspace", "port_share", "workspace_snapshot"].includes(entry.resource_type)) return workspacePath;
  if (entry.resource_type !== "workspace_build" || workspacePath === "") return "";
  const { build_number } = entry.additional_fields;
  return build_number === undefined ? workspacePath : `${workspacePath}/builds/${build_number}`;
};

export const presentEntry = (shown: AuditEntryView): AuditLog => {
  const { entry, user, organization, workspace, owner } = shown;
  const is_deleted = WORKSPACE_RESOURCES.includes(entry.resource_type)
    ? (workspace?.deleted ?? true)
    : shown.gone === 1;
  const ownerField = entry.resource_type === "workspace_build" && owner ? { workspace_owner: owner.username } : {};
  const versionField = shown.made === null ? {} : { template_version: shown.made };
  return {
    id: entry.id,
    time: toRfc3339(entry.time),
    organization_id: entry.organization_id ?? NIL_UUID,
    ...(organization ? { organization } : {}),
    user: user ? presentUser(user, shown.memberships) : null,
    action: entry.action,
    resource_type: entry.resource_type,
    // One invalid row must not break the page for a client that parses UUIDs strictly.
    resource_id: isUuid(entry.resource_id) ? entry.resource_id : NIL_UUID,
    resource_target: entry.resource_target,
    resource_icon: entry.resource_icon,
    resource_link: is_deleted ? "" : toLink(shown),
    is_deleted,
    diff: entry.diff,
    additional_fields: { ...entry.additional_fields, ...ownerField, ...versionField },
    description: formatDescription(entry),
    status_code: entry.status_code,
    request_id: entry.request_id,
    ip: entry.ip,
    user_agent: entry.user_agent,
  };
};
