// What each page asks the server for first, so that it is asked while the page's code is still on its way (early.ts). The page calls for
// it as always and gets the answer that was asked for (../../browser/early.ts). test/browser/early.mjs finds what is missing here, and
// what no page takes.

/**
 * By the path of the page, the first that fits counts: addresses below /api/v2, as the page asks for them. `:name` is that part of the
 * path, `{q}` the filter in the address, `{range}` and `{before}` the days of a report and those before them. What follows a blank is a body, which is posted.
 */
type FirstData = Readonly<Record<string, readonly string[]>>;

const MAY_CHANGE_TEMPLATE =
  '/authcheck {"checks":{"change":{"object":{"resource_type":"template","resource_id":":template"},"action":"update"}}}';
const TEMPLATE = ["/templates/:template", "/templates/:template/versions?include_archived=true", MAY_CHANGE_TEMPLATE];

const USE = [
  "/insights/templates?{range}&interval=day",
  "/insights/templates?{before}&interval=day",
  "/insights/user-activity?{range}",
  "/insights/user-activity?{before}",
  "/templates",
];

/** Who is signed in, which everything else goes by. */
export const SESSION = ["/users/me", "/organizations", "/users/me/roles"];

const [WORKSPACES, CHATS] = ["/workspaces/watch", "/chats?limit=100"];

/** The live lists, and what is read once one of them is open. */
export const STREAMS: readonly (readonly [socket: string, then?: string])[] = [[WORKSPACES], ["/chats/watch", CHATS]];

/** What the server writes into each page for anyone who is signed in (src/api/http/first-answers.ts), so that it need not be asked for. */
export const BEGINNING = { session: SESSION, workspaces: WORKSPACES, chats: CHATS };

/** Pages for people who are not signed in. */
export const DOORS: FirstData = {
  "/login": ["/users/first", "/users/authmethods"],
  "/setup": ["/users/first"],
};

/** Files that the content of a page needs alongside its own, by the beginnings of their names: loaded with it. */
export const FIRST_FILES: FirstData = {
  "/chats/:chat": ["blocks"],
  "/docs": ["blocks"],
  "/docs/:page": ["blocks"],
  "/terminals/:agent": ["terminal-session"],
  "/insights": ["plot-drawing"],
  "/insights/:tab": ["plot-drawing"],
};

export const FIRST_DATA: FirstData = {
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
  "/insights": USE,
  "/insights/builds": ["/insights/builds?{range}&interval=day", "/insights/builds?{before}&interval=day"],
  "/insights/chats": ["/insights/chats?{range}&interval=day", "/insights/chats?{before}&interval=day"],
  "/insights/latency": ["/insights/user-latency?{range}", "/insights/user-activity?{range}"],
  "/audit": ["/audit?q={q}&limit=50", "/audit/retention"],
  "/trash": ["/workspaces/trash"],
  "/prebuilds": ["/repositories/prebuilds"],
  "/connections": ["/connectionlog?q={q}&limit=50", "/connectionlog/retention"],
  "/admin": ["/users?limit=500", "/invitations"],
  "/admin/people": ["/users?limit=500", "/invitations"],
  "/admin/sign-in": ["/users/oidc"],
  "/admin/sign-in/:item": ["/users/oidc"],
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
