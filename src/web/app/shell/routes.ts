// How each page of the app is fetched when it is opened first.
import type { AnyComponent } from "preact";
import { later } from "./later.tsx";
import type { PATHS } from "./places.ts";

export const routes: Record<(typeof PATHS)[number], AnyComponent> = {
  "/": later(() => import("../pages/home/home.tsx")),
  "/account": later(() => import("../pages/account/account.tsx")),
  "/account/:tab": later(() => import("../pages/account/account.tsx")),
  "/admin": later(() => import("../pages/admin/admin.tsx")),
  "/admin/:tab": later(() => import("../pages/admin/admin.tsx")),
  "/admin/:tab/:item": later(() => import("../pages/admin/admin.tsx")),
  "/docs": later(() => import("../pages/docs/docs.tsx")),
  "/docs/:page": later(() => import("../pages/docs/docs.tsx")),
  "/insights": later(() => import("../pages/insights/insights.tsx")),
  "/insights/:tab": later(() => import("../pages/insights/insights.tsx")),
  "/audit": later(() => import("../pages/audit/audit.tsx")),
  "/connections": later(() => import("../pages/connections/connections.tsx")),
  "/templates": later(() => import("../pages/templates/templates.tsx")),
  "/templates/:template": later(() => import("../pages/template/template.tsx")),
  "/templates/:template/:tab": later(() => import("../pages/template/template.tsx")),
  "/tasks": later(() => import("../pages/tasks/tasks.tsx")),
  "/terminals": later(() => import("../pages/terminals/terminals.tsx")),
  "/terminals/:agent": later(() => import("../pages/terminal/terminal.tsx")),
  "/workspaces": later(() => import("../pages/workspaces/workspaces.tsx")),
  "/workspaces/:workspace": later(() => import("../pages/workspace/workspace.tsx")),
  "/workspaces/:workspace/:tab": later(() => import("../pages/workspace/workspace.tsx")),
  "/new": later(() => import("../pages/create/create.tsx")),
  "/chats": later(() => import("../pages/chats/chats.tsx")),
  "/chats/:chat": later(() => import("../pages/chat/chat.tsx")),
};

/** Without the frame: nobody is signed in yet. */
export const doors = {
  "/login": later(() => import("../pages/door/login.tsx")),
  "/setup": later(() => import("../pages/door/setup.tsx")),
};
