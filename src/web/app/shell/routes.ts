// Every page of the app: its path, its place in the navigation, and how it is fetched when it is opened first. A new page is a line
// here and, when its path is new, one in src/web/pages.ts.
import { lazy } from "preact-iso";
import type { IconName } from "../icons.ts";

export const routes = {
  "/": lazy(() => import("../pages/home/home.tsx")),
  "/workspaces": lazy(() => import("../pages/workspaces/workspaces.tsx")),
};

/** Without the frame: nobody is signed in yet. */
export const doors = {
  "/login": lazy(() => import("../pages/door/login.tsx")),
  "/setup": lazy(() => import("../pages/door/setup.tsx")),
};

export type Place = {
  readonly href: string;
  readonly label: string;
  readonly icon: IconName;
  /** Two keys, shown while Alt is held. */
  readonly keys: string;
  /** Only for those who have some role. */
  readonly forRoles?: boolean;
};

export const PLACES: readonly Place[] = [
  { href: "/", label: "Home", icon: "home", keys: "g h" },
  { href: "/workspaces", label: "Workspaces", icon: "box", keys: "g w" },
];

/** Below the heading Organization. */
export const MORE_PLACES: readonly Place[] = [];

/** On phones, at the lower edge. */
export const TABS: readonly Omit<Place, "keys">[] = [
  { href: "/", label: "Home", icon: "home" },
  { href: "/workspaces", label: "Workspaces", icon: "box" },
  { href: "/new", label: "New", icon: "plus" },
];

/** True when the app has this page: links to it are shown. */
export const hasPage = (path: string): boolean => path in routes;
