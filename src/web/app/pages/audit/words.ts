// Formats audit entries for display.
import type { AuditAction, AuditLog, ResourceType } from "#schema/audit.ts";
import { chats } from "../../data/chats.ts";

/** The actions and resource types that the search offers. */
export const AUDIT_ACTIONS: readonly AuditAction[] = [
  ...(["create", "write", "delete", "start", "stop", "login", "logout", "connect", "disconnect"] as const),
  ...(["open", "close", "register", "request_password_reset"] as const),
];
export const RESOURCE_TYPES: readonly ResourceType[] = [
  ...(["workspace", "workspace_build", "template", "template_version", "user", "api_key", "git_ssh_key"] as const),
  ...([
    "organization",
    "organization_member",
    "workspace_agent",
    "workspace_app",
    "port_share",
    "workspace_snapshot",
    "task",
    "chat",
  ] as const),
  ...([
    "chat_settings",
    "user_chat_settings",
    "user_skill",
    "user_secret",
    "ai_provider",
    "ai_model",
    "mcp_server",
  ] as const),
  ...([
    "external_auth_link",
    "provisioner_key",
    "file",
    "audit_settings",
    "second_factor",
    "passkey",
    "invitation",
    "repository_prebuild",
    "ai_call",
    "deploy_key",
  ] as const),
];

const ACTION_TEXTS: Readonly<Record<AuditAction, string>> = {
  create: "created",
  write: "changed",
  delete: "deleted",
  start: "started",
  stop: "stopped",
  login: "signed in",
  logout: "signed out",
  register: "registered",
  request_password_reset: "requested a password reset for",
  connect: "connected to",
  disconnect: "disconnected from",
  open: "opened",
  close: "closed",
};

const ATTEMPT_TEXTS: Readonly<Record<AuditAction, string>> = {
  create: "create",
  write: "change",
  delete: "delete",
  start: "start",
  stop: "stop",
  login: "sign in",
  logout: "sign out",
  register: "register",
  request_password_reset: "request a password reset for",
  connect: "connect to",
  disconnect: "disconnect from",
  open: "open",
  close: "close",
};

/** True if the entry records a failed attempt. */
export const isRefused = ({ status_code }: AuditLog): boolean => status_code >= 400;

export const formatVerb = (entry: AuditLog): string =>
  isRefused(entry)
    ? `failed to ${ATTEMPT_TEXTS[entry.action] ?? entry.action}`
    : (ACTION_TEXTS[entry.action] ?? entry.action);

export const formatKind = ({ resource_type }: AuditLog): string =>
  (resource_type === "ai_call" ? "recording of model call" : resource_type.replace(/^ai_/, ""))
    .replaceAll("_", " ")
    .replace("api key", "token")
    .replace("git ssh", "SSH");

/** Sign-in and sign-out entries are about the user, not the key. Same rule as in `present.ts` of the audit log. */
const isAboutUser = ({ action, resource_type }: AuditLog): boolean =>
  resource_type === "api_key" && ["login", "logout", "register"].includes(action);

/** Returns the kind and name of the target, or empty strings if the verb says it all. */
export const toTarget = (entry: AuditLog): { readonly kind: string; readonly name: string } => {
  if (isAboutUser(entry)) return { kind: "", name: "" };
  if (entry.resource_type === "user" && entry.action === "create" && entry.user?.id === entry.resource_id) {
    return { kind: "their account with", name: getMethod(entry) || "a sign-in" };
  }
  return { kind: formatKind(entry), name: formatName(entry) };
};

/** Returns how something was done, if the entry contains it. */
const getMethod = ({ additional_fields }: AuditLog): string => {
  const { by } = additional_fields as { by?: unknown };
  return typeof by === "string" ? by : "";
};

/**
 * The log stores no chat titles, because they repeat the conversation; chats that the reader can see are named here. An uploaded file has
 * no name except that of the template version created from it; without one, a short form of its digest is shown.
 */
const formatName = ({ resource_type, resource_id, resource_target, additional_fields }: AuditLog): string => {
  if (resource_type === "chat") return chats.value.get(resource_id)?.title || resource_target;
  if (resource_type !== "file") return resource_target;
  const { template_version } = additional_fields as { template_version?: string };
  return template_version ? `of ${template_version}` : resource_target.slice(0, 12);
};

export const formatSentence = (entry: AuditLog): string => {
  const { kind, name } = toTarget(entry);
  return [formatActor(entry), formatVerb(entry), kind, name].filter(Boolean).join(" ");
};

/** Without a user, it was a command on the server's machine, the server itself, or a client that had not signed in. */
export const formatActor = (entry: AuditLog): string => {
  if (entry.user) return entry.user.username;
  if (entry.ip !== null) return "Anonymous client";
  return getMethod(entry) === "command line" ? "Command line" : "Slipway";
};

/** Returns the first changed field and the number of other changes. */
export const formatChange = ({ diff, additional_fields }: AuditLog): string => {
  const [first, ...rest] = Object.keys(diff);
  if (first !== undefined) return rest.length === 0 ? first : `${first}, ${rest.length} more`;
  const { build_number, build_reason } = additional_fields as { build_number?: string; build_reason?: string };
  return [build_number && `build ${build_number}`, build_reason].filter(Boolean).join(", ");
};

/** Formats a field's value: strings unchanged, everything else as JSON. */
export const formatValue = (value: unknown): string => {
  if (value === "" || value === null || value === undefined) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
};
