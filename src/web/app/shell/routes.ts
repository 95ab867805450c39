// How each page of the app is loaded. All paths of one page share a component, so that switching tabs does not recreate it.
import HomePage from "../pages/home/home.tsx";
import { here, type Later, later } from "./later.tsx";
import { HERE, type PATHS } from "./places.ts";

const account = later(() => import("../pages/account/account.tsx"));
const admin = later(() => import("../pages/admin/admin.tsx"));
const docs = later(() => import("../pages/docs/docs.tsx"));
const insights = later(() => import("../pages/insights/insights.tsx"));
const template = later(() => import("../pages/template/template.tsx"));
const workspace = later(() => import("../pages/workspace/workspace.tsx"));

export const routes: Record<(typeof PATHS)[number], Later> = {
  [HERE]: here(HomePage),
  "/account": account,
  "/account/:tab": account,
  "/admin": admin,
  "/admin/:tab": admin,
  "/admin/:tab/:item": admin,
  "/docs": docs,
  "/docs/:page": docs,
  "/insights": insights,
  "/insights/:tab": insights,
  "/audit": later(() => import("../pages/audit/audit.tsx")),
  "/connections": later(() => import("../pages/connections/connections.tsx")),
  "/templates": later(() => import("../pages/templates/templates.tsx")),
  "/templates/:template": template,
  "/templates/:template/:tab": template,
  "/prebuilds": later(() => import("../pages/prebuilds/prebuilds.tsx")),
  "/tasks": later(() => import("../pages/tasks/tasks.tsx")),
  "/terminals": later(() => import("../pages/terminals/terminals.tsx")),
  "/terminals/:agent": later(() => import("../pages/terminal/terminal.tsx")),
  "/workspaces": later(() => import("../pages/workspaces/workspaces.tsx")),
  "/workspaces/:workspace": workspace,
  "/workspaces/:workspace/:tab": workspace,
  "/trash": later(() => import("../pages/trash/trash.tsx")),
  "/new": later(() => import("../pages/create/create.tsx")),
  "/chats": later(() => import("../pages/chats/chats.tsx")),
  "/chats/:chat": later(() => import("../pages/chat/chat.tsx")),
};

/** Pages without the app's frame, for users who are not signed in. */
export const doors: Record<string, Later> = {
  "/login": later(() => import("../pages/door/login.tsx")),
  "/setup": later(() => import("../pages/door/setup.tsx")),
  "/invite": later(() => import("../pages/door/invite.tsx")),
};
