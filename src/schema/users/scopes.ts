// Scopes of API keys: full access, apps only, or single actions on kinds of resources, with the names that upstream clients use
// (facts/platform 1.3). A scope only narrows its user's access. Each operation declares the scope that it needs
// (src/api/http/operation.ts).

/** The actions on each kind of resource. */
const ACTIONS = {
  ai: ["use"],
  api_key: ["create", "read", "update", "delete"],
  audit_log: ["read"],
  chat: ["create", "read", "update", "delete", "share"],
  chat_config: ["read", "update"],
  debug_info: ["read"],
  deployment_config: ["read", "update"],
  deployment_stats: ["read"],
  file: ["create", "read"],
  group: ["create", "read", "update", "delete"],
  mcp_server: ["create", "read", "update", "delete"],
  notification: ["read", "update"],
  organization: ["create", "read", "update", "delete"],
  organization_member: ["create", "read", "update", "delete"],
  provisioner_daemon: ["read"],
  provisioner_jobs: ["read"],
  provisioner_key: ["create", "read", "delete"],
  task: ["create", "read", "update", "delete"],
  template: ["create", "read", "update", "delete", "use", "view_insights"],
  user: ["create", "read", "update", "delete", "read_personal", "update_personal"],
  user_secret: ["create", "read", "update", "delete"],
  workspace: ["create", "read", "update", "delete", "start", "stop", "ssh", "share", "application_connect"],
} as const satisfies Record<string, readonly string[]>;

type Actions = typeof ACTIONS;

/** One action on one kind of resource. */
export type ActionScope = { [R in keyof Actions]: `${R}:${Actions[R][number]}` }[keyof Actions];

/**
 * Scopes that change who else has access to something. An application needs them by name: full access, `workspace:*` and other wildcards
 * don't include them (rule OA-22).
 */
const ACCESS_SCOPES = [
  "chat:share",
  "group:create",
  "group:delete",
  "group:update",
  "organization_member:create",
  "organization_member:delete",
  "workspace:share",
] as const satisfies readonly ActionScope[];

export type AccessScope = (typeof ACCESS_SCOPES)[number];

export const isAccessScope = (scope: string): scope is AccessScope =>
  (ACCESS_SCOPES as readonly string[]).includes(scope);

/** Combined scopes for one purpose. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  "coder:apikeys.manage_self": ["api_key:*"],
  "coder:templates.author": [
    ...["file:create", "file:read", "template:create", "template:read", "template:update", "template:delete"],
    "template:view_insights",
  ],
  "coder:templates.build": ["file:create", "file:read", "template:create", "template:read", "template:update"],
  "coder:workspaces.access": ["workspace:read", "workspace:ssh", "workspace:application_connect", "template:read"],
  "coder:workspaces.create": ["workspace:create", "workspace:read", "template:read", "template:use"],
  "coder:workspaces.operate": [
    ...["workspace:read", "workspace:update", "workspace:start", "workspace:stop", "template:read"],
  ],
  "coder:workspaces.delete": ["workspace:read", "workspace:delete", "template:read"],
};

/** The scopes that are not for one kind of resource: full access, and only the apps of workspaces. */
const BROAD_SCOPES = ["all", "application_connect"] as const;

const singleScopes = Object.entries(ACTIONS).flatMap(([resource, actions]) =>
  [...actions, "*"].map((action) => `${resource}:${action}`),
);

/** All scopes with which a token can be created. */
export const SCOPES: readonly string[] = [...BROAD_SCOPES, ...singleScopes, ...Object.keys(GROUPS)].sort();
const KNOWN = new Set(SCOPES);

/** Returns the name under which a scope is stored (`coder:all` is stored as `all`); undefined for an unknown scope. */
export const findScope = (name: string): string | undefined => {
  const stored = name === "coder:all" || name === "coder:application_connect" ? name.slice("coder:".length) : name;
  return KNOWN.has(stored) ? stored : undefined;
};

/** Returns whether the scopes cover `needed`, which can also be a whole resource (`workspace:*`) or a group. */
export const hasScope = (scopes: readonly string[], needed: string): boolean => {
  if (scopes.includes("all") || scopes.includes(needed)) return true;
  if (needed === "all") return false;
  const parts = GROUPS[needed] ?? (needed.endsWith(":*") ? listActions(needed) : undefined);
  if (parts) return parts.every((part) => hasScope(scopes, part));
  if (needed === "workspace:application_connect" && scopes.includes("application_connect")) return true;
  const [resource = ""] = needed.split(":");
  return scopes.some((scope) => scope === `${resource}:*` || GROUPS[scope]?.some((part) => hasScope([part], needed)));
};

/** Scopes that let a program run commands in workspaces, itself or with a chat. */
const ENTRY_SCOPES = [
  "workspace:ssh",
  "chat:create",
  "chat:update",
  "task:create",
] as const satisfies readonly ActionScope[];

/** Returns whether a program with these scopes can read what is in a workspace, such as its agent's token. */
export const canEnterWorkspaces = (scopes: readonly string[]): boolean =>
  ENTRY_SCOPES.some((scope) => hasScope(scopes, scope));

const listActions = (wildcard: string): string[] => {
  const resource = wildcard.slice(0, -2) as keyof typeof ACTIONS;
  return (ACTIONS[resource] ?? []).map((action) => `${resource}:${action}`);
};
