// The list of pages, and their places in the navigation. routes.ts says how each is loaded.
import type { IconName } from "../icons.ts";

/** The page included in the app's code: most visits start here, and it is small. */
export const EAGER_PATH = "/";

/** The paths of the app's pages; src/web/pages.ts serves the app at them. */
export const PATHS = [
  "/",
  "/workspaces",
  "/workspaces/:workspace",
  "/workspaces/:workspace/:tab",
  "/new",
  "/trash",
  "/chats",
  "/chats/:chat",
  "/tasks",
  "/terminals",
  "/terminals/:agent",
  "/templates",
  "/templates/:template",
  "/templates/:template/:tab",
  "/prebuilds",
  "/insights",
  "/insights/:tab",
  "/audit",
  "/connections",
  "/admin",
  "/admin/:tab",
  "/admin/:tab/:item",
  "/account",
  "/account/:tab",
  "/docs",
  "/docs/:page",
] as const;

/** True if the app has this page, so that links to it are shown. */
export const hasPage = (path: string): boolean => (PATHS as readonly string[]).includes(path);

export type PageLink = {
  readonly href: string;
  readonly label: string;
  readonly icon: IconName;
  /** Two keys, shown while Alt is held. */
  readonly keys: string;
  /** Only for users with a site role or with something to administer. */
  readonly for?: "roles" | "administrators";
};

export const PLACES: readonly PageLink[] = [
  { href: "/", label: "Home", icon: "home", keys: "g h" },
  { href: "/workspaces", label: "Workspaces", icon: "box", keys: "g w" },
  { href: "/chats", label: "Chats", icon: "chat", keys: "g c" },
  { href: "/tasks", label: "Tasks", icon: "check", keys: "g k" },
  { href: "/terminals", label: "Terminals", icon: "terminal", keys: "g t" },
  { href: "/templates", label: "Templates", icon: "layers", keys: "g p" },
];

/** Shown below the heading Organization. */
export const MORE_PLACES: readonly PageLink[] = [
  { href: "/insights", label: "Insights", icon: "chart", keys: "g i", for: "roles" },
  { href: "/audit", label: "Audit", icon: "list", keys: "g a", for: "roles" },
  { href: "/connections", label: "Connections", icon: "plug", keys: "g n", for: "roles" },
  { href: "/admin", label: "Administration", icon: "sliders", keys: "g s", for: "administrators" },
];

/** The tabs at the bottom on phones. */
export const TABS: readonly Omit<PageLink, "keys">[] = [
  { href: "/", label: "Home", icon: "home" },
  { href: "/workspaces", label: "Workspaces", icon: "box" },
  { href: "/new", label: "New", icon: "plus" },
  { href: "/chats", label: "Chats", icon: "chat" },
];

/** The permissions of the user, which decide what the navigation shows. */
export type Viewer = { readonly hasRoles: boolean; readonly mayAdminister: boolean };

/** True if the page is offered to the user. */
export const isOffered = (link: { readonly for?: PageLink["for"] }, { hasRoles, mayAdminister }: Viewer): boolean =>
  link.for === undefined || (link.for === "roles" ? hasRoles : mayAdminister);
