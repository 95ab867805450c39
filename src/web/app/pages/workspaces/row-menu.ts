// The menu of a workspace, on its row and its page.
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call } from "../../data/api.ts";
import { listAgents } from "../../data/one-workspace.ts";
import { chooseOpenAction, listEditors } from "../../data/open.ts";
import { canStart, canStop, isTransitional } from "../../data/states.ts";
import * as actions from "../../data/workspace-actions.ts";
import type { MenuItem } from "../../parts/menu.tsx";
import { hasPage } from "../../shell/page-list.ts";
import { openFork } from "./fork.tsx";

/** Returns every action that the workspace's state allows. */
export const listMenuItems = (row: WorkspaceSummary): MenuItem[] => [
  ...(canStart(row) ? [{ icon: "play" as const, label: "Start", act: () => actions.startWorkspace(row) }] : []),
  ...(canStop(row) ? [{ icon: "stop" as const, label: "Stop", act: () => actions.stopWorkspace(row) }] : []),
  ...(row.status === "running"
    ? [{ icon: "restart" as const, label: "Restart", act: () => actions.restartWorkspace(row) }]
    : []),
  ...(isTransitional(row) ? [{ icon: "x" as const, label: "Cancel build", act: () => actions.cancelBuild(row) }] : []),
  ...(row.outdated && !isTransitional(row)
    ? [{ icon: "up" as const, label: "Update", note: "newest version", act: () => actions.updateWorkspace(row) }]
    : []),
  ...(row.status === "running" && row.deadline
    ? [{ icon: "clock" as const, label: "Keep 1 h more", act: () => actions.extendDeadline(row) }]
    : []),
  ...(row.dormant_at ? [{ icon: "play" as const, label: "Wake up", act: () => actions.activateWorkspace(row) }] : []),
  "line",
  ...(row.status === "running" && row.agents[0] && hasPage("/terminals/:agent")
    ? [{ icon: "terminal" as const, label: "Terminal", href: `/terminals/${row.agents[0].id}` }]
    : []),
  ...(row.status === "running" && hasPage("/chats")
    ? [{ icon: "chat" as const, label: "New chat", href: `/chats?workspace=${row.id}` }]
    : []),
  { icon: "pin", label: row.favorite ? "Unpin" : "Pin", act: () => actions.togglePin(row) },
  { icon: "branch", label: "Fork", act: () => openFork(row) },
  { icon: "list", label: "Builds", href: `/workspaces/${row.id}/builds` },
  { icon: "sliders", label: "Parameters", href: `/workspaces/${row.id}/parameters` },
  { icon: "trash", label: "Delete…", isDanger: true, act: () => actions.deleteWorkspaces([row]) },
];

/**
 * Returns the workspace's apps and the most recently used editor. Loaded when the menu opens, because a list of thousands does not include
 * them.
 */
export const listAppItems = async (row: WorkspaceSummary): Promise<readonly MenuItem[]> => {
  if (row.status !== "running") return [];
  const [workspace, { host }] = await Promise.all([
    call("GET /workspaces/:workspace", { path: { workspace: row.id } }),
    call("GET /applications/host"),
  ]);
  const targets = listAgents(workspace).map((agent) => ({ workspace, agent }));
  const apps = targets.flatMap((target) =>
    target.agent.apps.flatMap((app): MenuItem[] => {
      if (app.hidden) return [];
      const openAction = chooseOpenAction(target, app, host);
      const label = app.display_name || app.slug;
      if (openAction.way === "program") return [{ icon: "out", label, act: openAction.act }];
      return [
        { icon: app.command ? "terminal" : "out", label, href: openAction.href, newTab: openAction.way !== "here" },
      ];
    }),
  );
  const [target] = targets;
  const [editor] = target ? listEditors(target) : [];
  return [...(editor ? [{ ...editor, icon: "pen" as const }] : []), ...apps];
};
