// What happens when a template lowers the level its workspaces may share ports at: each workspace above it is told. A crash in between
// hurts nobody, because what is read is capped anyway (db/workspaces/port-shares.ts), and the rest is told at the next start (rule SH-12).
import { log } from "#base/log.ts";
import type { Store } from "#db/engine/store.ts";
import { listWorkspacesAboveLevel } from "#db/workspaces/port-shares.ts";
import type { Directory } from "../runtime/directory.ts";
import type { WorkspaceActor } from "./actor.ts";

/** For one template, or at start for all. Resolves when every workspace has answered. */
export const lowerPortShares = async (
  store: Store,
  workspaces: Directory<WorkspaceActor>,
  template_id: string | null = null,
): Promise<void> => {
  for (const { id } of await store.scan(listWorkspacesAboveLevel({ template_id }))) {
    await workspaces.ask(id, "lowerPorts", {}).catch((error) => {
      log("workspaces").error("the port shares of {id} cannot be lowered: {error}", { id, error });
    });
  }
};
