// One workspace whole, live, as long as its page is open.
import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call } from "./api.ts";
import { LiveSocket } from "./live-socket.ts";

export type Shown = { readonly workspace?: Workspace; readonly error?: unknown };

type Message = { type: "ping"; data: null } | { type: "data"; data: Workspace } | { type: "error"; data: unknown };

/** The workspace now and after each change; an error when there is none to see. */
export const useWorkspace = (id: string): { shown: Signal<Shown>; again: () => void } => {
  const shown = useMemo(() => signal<Shown>({}), [id]);
  // Asked once by itself: a WebSocket that is refused does not say why.
  const again = (): void => {
    call("GET /workspaces/:workspace", { path: { workspace: id } }).then(
      (workspace) => {
        if (!shown.value.workspace) shown.value = { workspace };
      },
      (error) => {
        shown.value = { ...shown.value, error };
      },
    );
  };
  useEffect(() => {
    again();
    const socket = new LiveSocket({
      address: () => `/api/v2/workspaces/${encodeURIComponent(id)}/watch-ws`,
      pings: true,
      message: (text) => {
        const message = JSON.parse(text) as Message;
        if (message.type === "data") shown.value = { workspace: message.data };
      },
    });
    return () => socket.end();
  }, [id]);
  return { shown, again };
};
