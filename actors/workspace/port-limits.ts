// Lowers the port shares of all workspaces of a template that has lowered its maximum share level (rule SH-12). A crash does no harm,
// because reads apply the maximum anyway (db/workspaces/port-shares.ts), and the next start of the server handles the remaining workspaces.
import { log } from "#base/log.ts";
import type { Store } from "#db/engine/store.ts";
import { listWorkspacesAboveLevel } from "#db/workspaces/port-shares.ts";
import type { Directory } from "../runtime/directory.ts";
import type { WorkspaceActor } from "./actor.ts";

/** Handles one template, or all templates at startup. Resolves when every workspace has answered. */
export const lowerPortShares = async (
  store: Store,
  workspaces: Directory<WorkspaceActor>,
  template_id: string | null = null,
): Promise<void> => {
  for (const { id } of await store.scan(listWorkspacesAboveLevel({ template_id }))) {
    await workspaces.ask(id, "lowerPorts", {}).catch((error) => {
      log("workspaces").error("cannot lower the port shares of {id}: {error}", { id, error });
    });
  }
};
