// One workspace with all its details, live while its page is open.
import { type Signal, signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call, Problem } from "./api.ts";
import { LiveSocket, onRefused } from "./live-socket.ts";

export type WorkspaceState = { readonly workspace?: Workspace; readonly error?: unknown };

type Message = { type: "ping"; data: null } | { type: "data"; data: Workspace } | { type: "error"; data: unknown };

/** Returns all agents of the current build, including those of containers. */
export const listAgents = ({ latest_build }: Pick<Workspace, "latest_build">): WorkspaceAgent[] =>
  latest_build.resources.flatMap(({ agents }) => agents);

/** Statuses for a workspace that doesn't exist, was deleted, or isn't shared with the user. */
const isUnavailable = (error: unknown): boolean =>
  error instanceof Problem && [400, 403, 404, 410].includes(error.status);

/** Returns the workspace, updated with each change, or an error if the user cannot see it or no longer can. */
export const useWorkspace = (id: string): { state: Signal<WorkspaceState>; reload: () => void } => {
  const shown = useMemo(() => signal<WorkspaceState>({}), [id]);
  const follow = useRef<() => void>(() => {});
  // A separate request: a refused WebSocket does not say why, and one for a missing workspace would retry forever.
  const reload = (): void => {
    call("GET /workspaces/:workspace", { path: { workspace: id } }).then(
      (workspace) => {
        if (!shown.value.workspace) shown.value = { workspace };
        follow.current();
      },
      (error) => {
        shown.value = { ...shown.value, error };
        // A network failure is not a refusal: the workspace is loaded again when the connection is back.
        if (!(error instanceof Problem) || error.status === 0 || error.status >= 500) follow.current();
      },
    );
  };
  useLayoutEffect(() => {
    let socket: LiveSocket | undefined;
    follow.current = () => {
      socket ??= new LiveSocket({
        address: () => `/api/v2/workspaces/${encodeURIComponent(id)}/watch-ws`,
        pings: true,
        onMessage: (text) => {
          const message = JSON.parse(text) as Message;
          if (message.type === "data") shown.value = { workspace: message.data };
        },
      });
    };
    reload();
    // The workspace may have been deleted or unshared. Without this request, the page would report that the server does not respond.
    const stop = onRefused(() => {
      if (!socket) return;
      call("GET /workspaces/:workspace", { path: { workspace: id } }).catch((error) => {
        if (!isUnavailable(error)) return;
        socket?.end();
        shown.value = { ...shown.value, error };
      });
    });
    return () => {
      stop();
      follow.current = () => {};
      socket?.end();
    };
  }, [id]);
  return { state: shown, reload };
};

/** Converts a workspace to a row of the live list, used until the list has loaded. */
export const toSummary = (workspace: Workspace): WorkspaceSummary => {
  const { latest_build: build, health, shared_with } = workspace;
  return {
    ...workspace,
    template_version_id: build.template_version_id,
    template_version_name: build.template_version_name,
    status: build.status,
    build_id: build.id,
    build_number: build.build_number,
    build_created_at: build.created_at,
    transition: build.transition,
    reason: build.reason,
    error: build.job.error,
    deadline: build.deadline,
    max_deadline: build.max_deadline,
    shared: shared_with.length > 0,
    healthy: health.healthy,
    agents: listAgents(workspace).map((agent) => ({ ...agent, healthy: agent.health.healthy })),
  };
};
