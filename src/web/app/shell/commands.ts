// Entries of the palette in addition to workspaces and chats: every page with its sections, and actions on workspaces.

import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { chooseTheme } from "../data/looks.ts";
import { signOut } from "../data/session.ts";
import { canStart, canStop } from "../data/states.ts";
import type { IconName } from "../icons.ts";
import { hasPage, isOffered, MORE_PLACES, type PageLink, PLACES, type Viewer } from "./page-list.ts";
import { openShortcuts } from "./shortcuts.tsx";

export type Entry = {
  readonly group: string;
  readonly icon: IconName;
  readonly label: string;
  readonly note?: string;
  readonly href?: string;
  readonly act?: () => unknown;
};

const makeCommand = (icon: IconName, label: string, target: Pick<Entry, "href" | "act">): Entry => ({
  group: "Commands",
  icon,
  label,
  ...target,
});

export const COMMANDS: readonly Entry[] = [
  makeCommand("plus", "New workspace", { href: "/new" }),
  makeCommand("branch", "Open a repository", { href: "/new?repo=" }),
  makeCommand("chat", "New chat", { href: "/chats" }),
  makeCommand("sun", "Light theme", { act: () => chooseTheme("light") }),
  makeCommand("moon", "Dark theme", { act: () => chooseTheme("dark") }),
  makeCommand("cols", "System theme", { act: () => chooseTheme("system") }),
  makeCommand("list", "Keyboard shortcuts", { act: openShortcuts }),
  makeCommand("out", "Sign out", { act: signOut }),
];

/** Sections of pages that have their own addresses. */
const SECTIONS: readonly {
  path: string;
  pageLabel: string;
  for?: PageLink["for"];
  names: readonly (readonly [string, string])[];
}[] = [
  {
    path: "/account",
    pageLabel: "Account",
    names: [
      ["profile", "Profile"],
      ["security", "Security"],
      ["sessions", "Sessions"],
      ["tokens", "API tokens"],
      ["applications", "Applications with access"],
      ["accounts", "Git and linked accounts"],
      ["ai-usage", "AI usage"],
      ["secrets", "Secrets"],
      ["permissions", "Chat permissions"],
      ["skills", "Skills"],
      ["dotfiles", "Dotfiles"],
      ["workspaces", "Workspaces"],
      ["quiet-hours", "Quiet hours"],
      ["notifications", "Notifications"],
    ],
  },
  {
    path: "/admin",
    pageLabel: "Administration",
    for: "administrators",
    names: [
      ["people", "People"],
      ["sign-in", "Sign-in"],
      ["organizations", "Organizations"],
      ["models", "Models"],
      ["mcp-servers", "MCP servers"],
      ["workers", "Workers"],
      ["external-accounts", "External accounts"],
      ["applications", "Applications"],
      ["permissions", "Permissions"],
      ["budgets", "Budgets"],
      ["ai-gateway", "AI gateway"],
      ["coding-agents", "Coding agents"],
      ["hooks", "Hooks"],
      ["health", "Health"],
      ["appearance", "Appearance"],
      ["settings", "Settings"],
      ["backups", "Backups"],
      ["logs", "Logs"],
    ],
  },
];

const makePageEntry = (icon: IconName, label: string, href: string, note?: string): Entry => ({
  group: "Pages",
  icon,
  label,
  href,
  ...(note ? { note } : {}),
});

/** Returns all pages that the user may open. */
export const listPageEntries = (viewer: Viewer): readonly Entry[] => [
  ...[...PLACES, ...MORE_PLACES]
    .filter((link) => isOffered(link, viewer))
    .map(({ label, icon, href }) => makePageEntry(icon, label, href)),
  ...SECTIONS.filter((link) => isOffered(link, viewer)).flatMap(({ path, pageLabel, names }) =>
    names.map(([name, label]) =>
      makePageEntry(pageLabel === "Account" ? "user" : "sliders", label, `${path}/${name}`, pageLabel),
    ),
  ),
  ...(viewer.mayAdminister ? [makePageEntry("user", "Invite people", "/admin/people", "Administration")] : []),
  makePageEntry("trash", "Trash", "/trash", "Workspaces"),
  makePageEntry("branch", "Repository prebuilds", "/prebuilds", "Templates"),
  makePageEntry("file", "Documentation", "/docs"),
  makePageEntry("file", "API reference", "/swagger"),
];

/** Maximum number of workspaces with commands, the most recently used first. The others can be found by search. */
const MAX_WORKSPACES = 500;

/** Yields the actions for each workspace in its current state, named like Stop payments-api. */
export function* listWorkspaceCommands(workspaces: readonly WorkspaceSummary[]): Generator<Entry> {
  for (const workspace of workspaces.slice(0, MAX_WORKSPACES)) {
    const { id, name, status, agents } = workspace;
    const group = "Workspace commands";
    const [agent] = agents;
    if (status === "running" && agent && hasPage("/terminals/:agent")) {
      yield { group, icon: "terminal", label: `Terminal of ${name}`, href: `/terminals/${agent.id}` };
    }
    if (status === "running")
      yield { group, icon: "chat", label: `New chat in ${name}`, href: `/chats?workspace=${id}` };
    if (canStart(workspace))
      yield {
        group,
        icon: "play",
        label: `Start ${name}`,
        act: () => loadActions().then(({ startWorkspace: start }) => start(workspace)),
      };
    if (canStop(workspace))
      yield {
        group,
        icon: "stop",
        label: `Stop ${name}`,
        act: () => loadActions().then(({ stopWorkspace: stop }) => stop(workspace)),
      };
    yield { group, icon: "list", label: `Logs of ${name}`, href: `/workspaces/${id}/logs` };
    yield { group, icon: "clock", label: `Schedule of ${name}`, href: `/workspaces/${id}/schedule` };
    yield { group, icon: "sliders", label: `Parameters of ${name}`, href: `/workspaces/${id}/parameters` };
  }
}

const loadActions = () => import("../data/workspace-actions.ts");
