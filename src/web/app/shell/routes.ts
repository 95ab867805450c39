// How each page of the app is loaded. All paths of one page share a component, so that switching tabs does not recreate it.
import HomePage from "../pages/home/home.tsx";
import { eagerPage, type LazyPage, lazyPage } from "./lazy-page.tsx";
import { EAGER_PATH, type PATHS } from "./page-list.ts";

const account = lazyPage(() => import("../pages/account/account.tsx"));
const admin = lazyPage(() => import("../pages/admin/admin.tsx"));
const docs = lazyPage(() => import("../pages/docs/docs.tsx"));
const insights = lazyPage(() => import("../pages/insights/insights.tsx"));
const template = lazyPage(() => import("../pages/template/template.tsx"));
const workspace = lazyPage(() => import("../pages/workspace/workspace.tsx"));

export const routes: Record<(typeof PATHS)[number], LazyPage> = {
  [EAGER_PATH]: eagerPage(HomePage),
  "/account": account,
  "/account/:tab": account,
  "/admin": admin,
  "/admin/:tab": admin,
  "/admin/:tab/:item": admin,
  "/docs": docs,
  "/docs/:page": docs,
  "/insights": insights,
  "/insights/:tab": insights,
  "/audit": lazyPage(() => import("../pages/audit/audit.tsx")),
  "/connections": lazyPage(() => import("../pages/connections/connections.tsx")),
  "/templates": lazyPage(() => import("../pages/templates/templates.tsx")),
  "/templates/:template": template,
  "/templates/:template/:tab": template,
  "/prebuilds": lazyPage(() => import("../pages/prebuilds/prebuilds.tsx")),
  "/tasks": lazyPage(() => import("../pages/tasks/tasks.tsx")),
  "/terminals": lazyPage(() => import("../pages/terminals/terminals.tsx")),
  "/terminals/:agent": lazyPage(() => import("../pages/terminal/terminal.tsx")),
  "/workspaces": lazyPage(() => import("../pages/workspaces/workspaces.tsx")),
  "/workspaces/:workspace": workspace,
  "/workspaces/:workspace/:tab": workspace,
  "/trash": lazyPage(() => import("../pages/trash/trash.tsx")),
  "/new": lazyPage(() => import("../pages/create/create.tsx")),
  "/chats": lazyPage(() => import("../pages/chats/chats.tsx")),
  "/chats/:chat": lazyPage(() => import("../pages/chat/chat.tsx")),
};

/** Pages without the app's frame, for users who are not signed in. */
export const signInRoutes: Record<string, LazyPage> = {
  "/login": lazyPage(() => import("../pages/door/login.tsx")),
  "/setup": lazyPage(() => import("../pages/door/setup.tsx")),
  "/invite": lazyPage(() => import("../pages/door/invite.tsx")),
};
