// How each page of the app is fetched when it is opened first.
import type { AnyComponent } from "preact";
import { lazy } from "preact-iso";
import type { PATHS } from "./places.ts";

export const routes: Record<(typeof PATHS)[number], AnyComponent> = {
  "/": lazy(() => import("../pages/home/home.tsx")),
  "/account": lazy(() => import("../pages/account/account.tsx")),
  "/account/:tab": lazy(() => import("../pages/account/account.tsx")),
  "/admin": lazy(() => import("../pages/admin/admin.tsx")),
  "/admin/:tab": lazy(() => import("../pages/admin/admin.tsx")),
  "/admin/:tab/:item": lazy(() => import("../pages/admin/admin.tsx")),
  "/docs": lazy(() => import("../pages/docs/docs.tsx")),
  "/docs/:page": lazy(() => import("../pages/docs/docs.tsx")),
  "/insights": lazy(() => import("../pages/insights/insights.tsx")),
  "/insights/:tab": lazy(() => import("../pages/insights/insights.tsx")),
  "/audit": lazy(() => import("../pages/audit/audit.tsx")),
  "/templates": lazy(() => import("../pages/templates/templates.tsx")),
  "/templates/:template": lazy(() => import("../pages/template/template.tsx")),
  "/templates/:template/:tab": lazy(() => import("../pages/template/template.tsx")),
  "/terminals": lazy(() => import("../pages/terminals/terminals.tsx")),
  "/terminals/:agent": lazy(() => import("../pages/terminal/terminal.tsx")),
  "/workspaces": lazy(() => import("../pages/workspaces/workspaces.tsx")),
  "/workspaces/:workspace": lazy(() => import("../pages/workspace/workspace.tsx")),
  "/workspaces/:workspace/:tab": lazy(() => import("../pages/workspace/workspace.tsx")),
  "/new": lazy(() => import("../pages/create/create.tsx")),
  "/chats": lazy(() => import("../pages/chats/chats.tsx")),
  "/chats/:chat": lazy(() => import("../pages/chat/chat.tsx")),
};

/** Without the frame: nobody is signed in yet. */
export const doors = {
  "/login": lazy(() => import("../pages/door/login.tsx")),
  "/setup": lazy(() => import("../pages/door/setup.tsx")),
};
