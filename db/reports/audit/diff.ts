// Computes field-by-field changes: which fields of which kind of entity are logged, and which only by name (facts/platform 7). Pure.

import { toRfc3339 } from "#base/clock.ts";
import { sha256 } from "#base/ids.ts";
import type { ResourceType } from "#schema/audit.ts";
import type { AuditDiff } from "../../schema/audit.ts";

/** How each column is logged: as is, as a time, as a secret, or under another name. */
type TrackedColumns = Readonly<Record<string, { as?: string; kind?: "time" | "secret" }>>;

const trackPlain = (...columns: string[]): TrackedColumns => Object.fromEntries(columns.map((column) => [column, {}]));
const trackTimes = (...columns: string[]): TrackedColumns =>
  Object.fromEntries(columns.map((column) => [column, { kind: "time" as const }]));

/** A kind that is not listed here logs all fields it is given, none of which may be a secret (rule AU-5). */
const TRACKED: Partial<Record<ResourceType, TrackedColumns>> = {
  user: {
    ...trackPlain("id", "email", "username", "name", "status", "login_type", "avatar_url", "second_factor_required"),
    ...trackPlain("quiet_hours_schedule", "dotfiles_url", "dotfiles_branch", "dotfiles_install_command"),
    roles: { as: "rbac_roles" },
    password_hash: { as: "hashed_password", kind: "secret" },
  },
  api_key: {
    ...trackPlain("user_id", "token_name", "login_type", "scope", "scopes", "allowed_addresses", "lifetime_seconds"),
    ...trackTimes("created_at", "expires_at", "last_used"),
    secret_hash: { as: "hashed_secret", kind: "secret" },
  },
  passkey: trackPlain("id", "user_id", "name", "backed_up"),
  invitation: trackPlain("email", "roles", "organization_id", "organization_roles", "group_ids", "expires_at"),
  second_factor: { ...trackPlain("kind"), recovery_codes: { kind: "secret" } },
  user_secret: {
    ...trackPlain("name", "description", "env_name", "file_path"),
    sealed_value: { as: "value", kind: "secret" },
  },
  git_ssh_key: { ...trackPlain("user_id", "public_key"), sealed_private_key: { as: "private_key", kind: "secret" } },
  deploy_key: {
    ...trackPlain("id", "user_id", "url", "ssh_url", "public_key"),
    sealed_private_key: { as: "private_key", kind: "secret" },
  },
  organization: trackPlain("id", "name", "display_name", "description", "icon", "sharing_disabled"),
  organization_member: trackPlain("user_id", "organization_id", "username", "roles"),
  template: trackPlain(
    ...["id", "name", "display_name", "description", "icon", "active_version_id", "deprecation_message"],
    ...["default_ttl_ms", "activity_bump_ms", "autostop_requirement_days", "autostop_requirement_weeks"],
    ...["autostart_requirement_days", "failure_ttl_ms", "time_til_dormant_ms", "time_til_dormant_autodelete_ms"],
    ...["allow_user_cancel_workspace_jobs", "allow_user_autostart", "allow_user_autostop", "require_active_version"],
    ...[
      "snapshots_on_stop",
      "trash_days",
      "wake_on_connect",
      "default_coding_agent",
      "allow_dotfiles",
      "max_port_share_level",
      "use_classic_parameter_flow",
      "cors_behavior",
      "created_by",
      "user_acl",
      "group_acl",
    ],
  ),
  template_version: {
    ...trackPlain("id", "template_id", "name", "message", "file_id", "archived", "created_by"),
    canceled_at: { kind: "time" },
  },
  workspace: {
    ...trackPlain("id", "owner_id", "template_id", "name", "autostart_schedule", "automatic_updates", "favorite"),
    ...trackPlain("user_acl", "group_acl"),
    ...trackTimes("dormant_at", "deleting_at", "next_start_at", "deadline"),
    ttl_ms: { as: "ttl" },
  },
  workspace_build: { ...trackPlain("template_version_id"), canceled_at: { kind: "time" }, state: { kind: "secret" } },
  port_share: trackPlain("agent_name", "port", "protocol", "share_level"),
  // The title may be the beginning of the prompt.
  task: {
    ...trackPlain("id", "owner_id", "name", "chat_id", "coding_agent", "model_config_id"),
    display_name: { kind: "secret" },
    prompt: { kind: "secret" },
  },
  chat: trackPlain(
    ...["id", "owner_id", "title", "archived", "labels", "permissions", "permission_mode", "plan_mode", "workspace_id"],
    ...["user_acl", "group_acl"],
  ),
  ai_provider: {
    ...trackPlain("id", "provider", "display_name", "base_url", "enabled"),
    sealed_api_key: { as: "api_key", kind: "secret" },
  },
  ai_model: trackPlain(
    ...["id", "provider_id", "model", "display_name", "enabled", "is_default", "context_limit"],
    ...["compression_threshold", "model_config"],
  ),
  external_auth_link: {
    ...trackPlain("user_id", "provider_id"),
    ...trackTimes("expires_at"),
    sealed_tokens: { as: "tokens", kind: "secret" },
  },
  // People's custom prompts are private.
  user_chat_settings: {
    ...trackPlain("debug_logging", "threshold_percent", "mode", "model_config_id", "permissions"),
    ...trackPlain("permission_mode", "spend_limit_micros"),
    prompt: { kind: "secret" },
  },
  mcp_server: {
    ...trackPlain(
      "id",
      "organization_id",
      "slug",
      "display_name",
      "description",
      "icon",
      "url",
      "transport",
      "auth_type",
    ),
    ...trackPlain("api_key_header", "oauth2", "tool_allow_list", "tool_deny_list", "availability", "enabled"),
    ...trackPlain("model_intent", "allow_in_plan_mode"),
    sealed_secrets: { as: "secrets", kind: "secret" },
  },
  oauth2_provider_app: trackPlain("id", "name", "icon", "redirect_uris", "scopes", "auth_method", "self_registered"),
  oauth2_provider_app_secret: {
    ...trackPlain("id", "app_id", "last_characters"),
    secret_hash: { as: "secret", kind: "secret" },
  },
  provisioner_key: {
    ...trackPlain("id", "organization_id", "name", "tags"),
    secret_hash: { as: "key", kind: "secret" },
  },
  file: trackPlain("id", "hash", "mimetype", "size", "created_by"),
};

const KNOWN = new Map(
  Object.entries(TRACKED).map(([type, tracked]) => [type as ResourceType, Object.entries(tracked)]),
);

type Row = Readonly<Record<string, unknown>>;

/**
 * Returns the difference between two states of an entity; without `before` it was created, without `after` deleted. Secrets are named with
 * both values empty. Times are milliseconds in rows and RFC 3339 in the diff.
 */
export const computeDiff = (type: ResourceType, before: Row | undefined, after: Row | undefined): AuditDiff => {
  const tracked = KNOWN.get(type) ?? Object.entries(trackPlain(...Object.keys({ ...before, ...after })));
  const diff: Record<string, AuditDiff[string]> = {};
  for (const [column, { as: name = column, kind }] of tracked) {
    // Actors call this after each message, and usually nothing has changed.
    if (before && after && Object.is(before[column], after[column])) continue;
    const sample = after?.[column] ?? before?.[column];
    if (sample === undefined) continue;
    const oldValue = readColumn(before, column, sample);
    const newValue = readColumn(after, column, sample);
    if (Bun.deepEquals(oldValue, newValue)) continue;
    diff[name] =
      kind === "secret"
        ? { old: toZeroValue(sample), new: toZeroValue(sample), secret: true }
        : { old: toLoggedValue(oldValue, kind), new: toLoggedValue(newValue, kind), secret: false };
  }
  return diff;
};

/** A column missing from a state has its zero value. */
const readColumn = (row: Row | undefined, column: string, sample: unknown): unknown => {
  const value = row?.[column];
  return value === undefined ? toZeroValue(sample) : value;
};

/** Returns the zero value, which replaces a value that is not disclosed. */
export const toZeroValue = (value: unknown): unknown => {
  if (typeof value === "string") return "";
  if (typeof value === "number") return 0;
  if (typeof value === "boolean") return false;
  if (Array.isArray(value)) return [];
  return value === null ? null : {};
};

/** A time that has not been set is null. */
const toLoggedValue = (value: unknown, kind: "time" | "secret" | undefined): unknown => {
  if (kind !== "time") return truncateValue(value);
  return typeof value === "number" && value > 0 ? toRfc3339(value) : null;
};

/** Maximum characters of a value as JSON. The log is kept for years, and users can change their settings several times a second. */
const MAX_VALUE_CHARS = 4_096;

/** Returns the value, or the beginning of its JSON with a digest that tells it from other long values. */
const truncateValue = (value: unknown): unknown => {
  if (typeof value !== "string" && (typeof value !== "object" || value === null)) return value;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length <= MAX_VALUE_CHARS) return value;
  return `${text.slice(0, MAX_VALUE_CHARS)}… (${text.length} characters, SHA-256 ${sha256(text)})`;
};
