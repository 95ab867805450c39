// The first requests of each page, so that they are sent while the page's code is still loading (early.ts). The page requests the data as
// usual and receives the prefetched answer (../../browser/early.ts). test/browser/early.mjs finds requests that are missing here, and those
// that no page uses.

/**
 * By page path, first match wins: addresses below /api/v2 exactly as the page requests them. `:name` is that part of the path, `{q}` the
 * filter in the address, `{range}` and `{before}` the days of a report and those before them. Text after a space is a body, which is sent
 * with POST.
 */
type ByPath = Readonly<Record<string, readonly string[]>>;

const CAN_CHANGE_TEMPLATE =
  '/authcheck {"checks":{"change":{"object":{"resource_type":"template","resource_id":":template"},"action":"update"}}}';
const TEMPLATE = ["/templates/:template", "/templates/:template/versions?include_archived=true", CAN_CHANGE_TEMPLATE];

const USAGE = [
  "/insights/templates?{range}&interval=day",
  "/insights/templates?{before}&interval=day",
  "/insights/user-activity?{range}",
  "/insights/user-activity?{before}",
  "/templates",
];

const PEOPLE = ["/users?limit=500", "/invitations"];
const SIGN_IN = ["/users/oidc"];

/** The session, on which everything else depends. */
export const SESSION = ["/users/me", "/organizations", "/users/me/roles"];

const [WORKSPACES, CHATS] = ["/workspaces/watch", "/chats?limit=100"];

/** The live lists, and the requests made once one of them is open. */
export const STREAMS: readonly (readonly [socket: string, then?: string])[] = [[WORKSPACES], ["/chats/watch", CHATS]];

/** Data that the server includes in each page for signed-in users (src/api/http/first-answers.ts), so that it need not be requested. */
export const BEGINNING = {
  session: SESSION,
  workspaces: WORKSPACES,
  chats: CHATS,
  firstVisit: { page: "/", address: "/templates" },
};

/** Pages for users who are not signed in. */
export const SIGNED_OUT_PAGES: ByPath = {
  "/login": ["/users/first", "/users/authmethods"],
  "/setup": ["/users/first"],
};

/** Additional files that a page's content needs, by name prefix. They are loaded with the page's own files. */
export const FIRST_FILES: ByPath = {
  "/chats/:chat": ["blocks"],
  "/docs": ["blocks"],
  "/docs/:page": ["blocks"],
  "/terminals/:agent": ["terminal-session"],
  "/insights": ["plot-drawing"],
  "/insights/:tab": ["plot-drawing"],
};

export const FIRST_DATA: ByPath = {
  "/workspaces/:workspace": [
    "/workspaces/:workspace",
    "/applications/host",
    "/workspaces/:workspace/port-share",
    "/workspaces/:workspace/activity",
  ],
  "/workspaces/:workspace/builds": ["/workspaces/:workspace", "/workspaces/:workspace/builds?limit=50"],
  "/workspaces/:workspace/sharing": ["/workspaces/:workspace", "/workspaces/:workspace/acl"],
  "/workspaces/:workspace/:tab": ["/workspaces/:workspace"],
  "/new": ["/templates"],
  "/chats": ["/chats/models", "/chats/config/starting-permissions", "/ai/agents/available"],
  "/chats/:chat": ["/chats/:chat/messages?limit=40", "/chats/:chat", "/chats/models", "/chats/:chat/trials"],
  "/tasks": ["/tasks?q=owner%3Ame&limit=100", "/users/me/notifications/preferences", "/users/me/preferences"],
  "/templates": ["/templates"],
  "/templates/:template": TEMPLATE,
  "/templates/:template/access": [...TEMPLATE, "/templates/:template/acl"],
  "/templates/:template/settings": [...TEMPLATE, "/ai/agents/available", "/ai/agents/available?template_id=:template"],
  "/templates/:template/:tab": TEMPLATE,
  "/insights": USAGE,
  "/insights/builds": ["/insights/builds?{range}&interval=day", "/insights/builds?{before}&interval=day"],
  "/insights/chats": ["/insights/chats?{range}&interval=day", "/insights/chats?{before}&interval=day"],
  "/insights/latency": ["/insights/user-latency?{range}", "/insights/user-activity?{range}"],
  "/audit": ["/audit?q={q}&limit=50", "/audit/retention"],
  "/trash": ["/workspaces/trash"],
  "/prebuilds": ["/repositories/prebuilds"],
  "/connections": ["/connectionlog?q={q}&limit=50", "/connectionlog/retention"],
  "/admin": PEOPLE,
  "/admin/people": PEOPLE,
  "/admin/sign-in": SIGN_IN,
  "/admin/sign-in/:item": SIGN_IN,
  "/admin/organizations/:item": [
    "/organizations/:item/paginated-members?limit=500",
    "/organizations/:item/members/roles",
    "/organizations/:item/settings/workspace-sharing",
    "/organizations/:item/groups",
    "/invitations",
  ],
  "/admin/models": ["/chats/providers", "/chats/model-configs", "/chats/providers/local"],
  "/admin/coding-agents": ["/ai/agents", "/ai/settings"],
  "/admin/ai-gateway": ["/ai/settings", "/chats/providers"],
  "/admin/external-accounts": ["/deployment/external-auth"],
  "/admin/permissions": [
    "/chats/config/default-permissions",
    "/chats/config/system-prompt",
    "/chats/config/plan-mode-instructions",
    "/chats/config/retention-days",
    "/chats/config/auto-archive-days",
    "/chats/config/personal-model-overrides",
  ],
  "/admin/budgets": ["/chats/usage-limits", "/chats/cost/users?limit=100", "/ai/budgets"],
  "/admin/hooks": ["/hooks/consumer", "/hooks/dispatches?limit=50"],
  "/admin/health": ["/debug/health", "/prebuilds/settings"],
  "/admin/backups": ["/deployment/backups/homes"],
  "/admin/appearance": ["/appearance"],
  "/admin/settings": ["/deployment/config"],
  "/account/security": ["/users/me/factors", "/users/me/passkeys", "/users/authmethods"],
  "/account/sessions": ["/users/me/sessions"],
  "/account/tokens": ["/users/me/keys/tokens", "/users/me/keys/tokens/tokenconfig", "/auth/scopes"],
  "/account/accounts": ["/users/me/gitsshkey", "/users/me/deploy-keys", "/external-auth"],
  "/account/secrets": ["/users/me/secrets"],
  "/account/dotfiles": ["/users/me/dotfiles"],
  "/account/skills": ["/users/me/skills"],
  "/account/notifications": ["/notifications/templates/system", "/users/me/notifications/preferences"],
  "/account/permissions": ["/chats/config/user-permissions"],
};
