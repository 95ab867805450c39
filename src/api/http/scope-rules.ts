// Which scope of a key each operation takes (rule ID-21). The first rule whose path fits counts; what no rule names takes a key for
// everything. test/api/edge/scopes.test.ts asks every operation of the OpenAPI document.

/** Every key may, but one that opens apps only. */
export const ANY = "any";

/** `a b`: both. `a|b`: one of them is enough for the gate, and the route asks for the right one. */
type Need = string;
type Rule = readonly [path: string, needs: Readonly<Record<string, Need>>];

const reads = (scope: string): Readonly<Record<string, Need>> => ({ GET: scope });
const everything = (resource: string): Readonly<Record<string, Need>> => ({
  GET: `${resource}:read`,
  POST: `${resource}:create`,
  DELETE: `${resource}:delete`,
  PATCH: `${resource}:update`,
  PUT: `${resource}:update`,
});
const updates = (resource: string): Readonly<Record<string, Need>> => ({
  GET: `${resource}:read`,
  POST: `${resource}:update`,
  DELETE: `${resource}:update`,
  PATCH: `${resource}:update`,
  PUT: `${resource}:update`,
});
const personal = {
  GET: "user:read_personal",
  POST: "user:update_personal",
  DELETE: "user:update_personal",
  PATCH: "user:update_personal",
  PUT: "user:update_personal",
};
const inside = { GET: "workspace:ssh", POST: "workspace:ssh", DELETE: "workspace:ssh" };

// `*` is one segment of a path, `**` what is left of it, also nothing.
const RULES: readonly Rule[] = [
  ["deployment/ssh", reads(ANY)],
  ["deployment/config", reads("deployment_config:read")],
  ["appearance", { PUT: "deployment_config:update" }],
  ["deployment/stats", reads("deployment_stats:read")],
  ["debug/health/settings", { GET: "debug_info:read", PUT: "deployment_config:update" }],
  ["debug/**", reads("debug_info:read")],
  ["prebuilds/settings", { GET: "deployment_config:read", PUT: "deployment_config:update" }],
  ["applications/reconnecting-pty-signed-token", { POST: "workspace:ssh" }],
  ["authcheck", { POST: ANY }],
  ["entitlements", reads(ANY)],
  ["licenses", reads("deployment_config:read")],
  ["experiments/**", reads(ANY)],
  ["regions", reads(ANY)],
  ["derp-map", reads(ANY)],
  ["auth/scopes", reads(ANY)],
  ["workspaceagents/connection", reads(ANY)],
  ["applications/host", reads(ANY)],
  ["applications/auth-redirect", reads("workspace:application_connect")],
  ["users/logout", { POST: ANY }],
  ["users/me", { ...reads(ANY), DELETE: "user:delete" }],

  ["audit", reads("audit_log:read")],
  ["audit/export", reads("audit_log:read")],
  ["audit/watch", reads("audit_log:read")],
  ["connectionlog", reads("audit_log:read")],
  ["connectionlog/retention", reads("audit_log:read")],
  ["insights/**", reads("template:view_insights")],
  ["templates/*/daus", reads("template:view_insights")],

  ["ai/settings", updates("chat_config")],
  ["ai/**", reads("chat:read")],

  ["chats/config/**", updates("chat_config")],
  ["chats/models", reads("chat_config:read")],
  ["chats/model-configs/**", updates("chat_config")],
  ["chats/providers/**", updates("chat_config")],
  ["organizations/*/chats/**", updates("chat_config")],
  ["organizations/*/members/*/chats/**", updates("chat_config")],
  ["chats/*/acl", { ...reads("chat:read"), PATCH: "chat:share" }],
  ["chats/*/stream/desktop", reads("chat:update")],
  ["chats/*/fork", { POST: "chat:create" }],
  ["chats/files", { POST: "chat:create" }],
  ["chats", everything("chat")],
  ["chats/*", everything("chat")],
  ["chats/**", updates("chat")],

  ["organizations/*/groups/**", everything("group")],
  ["organizations/*/mcp-servers/*/oauth2/**", { ...updates("mcp_server"), GET: "mcp_server:update" }],
  ["organizations/*/mcp-servers/*/try", { POST: "mcp_server:update" }],
  ["organizations/*/mcp-servers/**", everything("mcp_server")],
  ["organizations/*/provisionerjobs/**", reads("provisioner_jobs:read")],
  ["organizations/*/provisionerdaemons", reads("provisioner_daemon:read")],
  ["organizations/*/provisionerkeys/**", everything("provisioner_key")],
  ["organizations/*/members/*/workspaces", { POST: "workspace:create template:use" }],
  ["organizations/*/members/*/workspaces/available-users", reads("workspace:create")],
  ["organizations/*/members/*/roles", { PUT: "organization_member:update" }],
  ["organizations/*/members/**", everything("organization_member")],
  ["organizations/*/paginated-members", reads("organization_member:read")],
  ["organizations/*/templates", everything("template")],
  ["organizations/*/templates/**", reads("template:read")],
  ["organizations/*/templateversions", { POST: "template:update" }],
  ["organizations/*/settings/**", updates("organization")],
  ["organizations", everything("organization")],
  ["organizations/*", everything("organization")],

  ["groups/**", everything("group")],
  ["files/**", everything("file")],
  ["templateversions/*/dynamic-parameters/evaluate", { POST: "template:read" }],
  ["templates", reads("template:read")],
  ["templates/*", everything("template")],
  ["templates/**", updates("template")],
  ["templateversions/**", updates("template")],

  ["users/*/keys/tokens/tokenconfig", reads("api_key:read")],
  ["users/*/keys/tokens", { GET: "api_key:read", POST: "api_key:create" }],
  ["users/*/keys/*/expire", { PUT: "api_key:update" }],
  // A session is a key for everything.
  ["users/*/keys", {}],
  ["users/*/keys/**", { GET: "api_key:read", PATCH: "api_key:update", DELETE: "api_key:delete" }],
  ["users/*/oauth2-grants/**", { GET: "api_key:read", DELETE: "api_key:delete" }],
  ["users/*/sessions/**", { GET: "api_key:read", DELETE: "api_key:delete" }],
  ["users/*/gitsshkey", personal],
  ["users/*/skills/**", personal],
  ["users/*/secrets/**", everything("user_secret")],
  ["users/*/appearance", personal],
  ["users/*/quiet-hours", personal],
  ["users/*/preferences", personal],
  ["users/*/autofill-parameters", personal],
  ["users/*/notifications/**", personal],
  ["users/*/webpush/**", personal],
  ["notifications/inbox/**", personal],
  ["notifications/test", personal],
  ["notifications/**", updates("notification")],
  ["external-auth/**", personal],
  ["users/*/organizations/**", reads("organization:read")],
  ["users/*/workspaces", { POST: "workspace:create template:use" }],
  ["users/*/workspace/**", reads("workspace:read")],
  ["users/*/profile", { PUT: "user:update" }],
  ["users/*/status/*", { PUT: "user:update" }],
  ["users/*/roles", { GET: "user:read", PUT: "user:update" }],
  ["users", everything("user")],
  ["users/*", { GET: "user:read", DELETE: "user:delete" }],

  ["tasks/*", { POST: "task:create workspace:create template:use" }],
  ["tasks/*/*", everything("task")],
  ["tasks/**", updates("task")],

  ["workspaces", reads("workspace:read")],
  ["workspaces/*/builds", { GET: "workspace:read", POST: "workspace:start|workspace:stop|workspace:delete" }],
  ["workspaces/*/restart", { POST: "workspace:start workspace:stop" }],
  ["workspaces/*/acl", { GET: "workspace:read", PATCH: "workspace:share", DELETE: "workspace:share" }],
  ["workspaces/*/port-share", { GET: "workspace:read", POST: "workspace:share", DELETE: "workspace:share" }],
  ["workspaces/**", updates("workspace")],
  ["workspacebuilds/*/state", { GET: "workspace:update", PUT: "workspace:update" }],
  ["workspacebuilds/**", updates("workspace")],
  ["tailnet", reads("workspace:ssh")],
  ["workspaceagents/*/pty", inside],
  ["workspaceagents/*/files/**", inside],
  ["workspaceagents/*/files", inside],
  ["workspaceagents/*/coordinate", inside],
  ["workspaceagents/*/containers/devcontainers/**", inside],
  ["workspaceagents/**", reads("workspace:read")],
];

const compiled = RULES.map(([path, needs]) => ({ pattern: patternOf(path), needs }));

function patternOf(path: string): RegExp {
  const text = path.replace("/**", "(?:/.*)?").replaceAll(/(?<!\.)\*/g, "[^/]+");
  return new RegExp(`^/api/(?:v2|experimental)/${text}/?$`);
}

/** What a key needs for this: a scope, several, or `any`; undefined: a key for everything. */
export const scopeFor = (method: string, path: string): Need | undefined => {
  const rule = compiled.find(({ pattern }) => pattern.test(path));
  return rule?.needs[method === "HEAD" ? "GET" : method];
};
