// Revokes the shares of all workspaces in an organization that has disabled sharing (rule SH-12). After a crash, the next start of the
// server handles the remaining workspaces.
import { log } from "#base/log.ts";
import type { Store } from "#db/engine/store.ts";
import { listForbiddenSharing } from "#db/workspaces/sharing.ts";
import type { Directory } from "../runtime/directory.ts";
import type { WorkspaceActor } from "./actor.ts";

/** Handles one organization, or all organizations at startup. Resolves when every workspace has answered. */
export const revokeForbiddenShares = async (
  store: Store,
  workspaces: Directory<WorkspaceActor>,
  organization_id: string | null = null,
): Promise<void> => {
  for (const { id } of await store.scan(listForbiddenSharing({ organization_id }))) {
    await workspaces.ask(id, "edit", { type: "unshare" }).catch((error) => {
      log("workspaces").error("cannot revoke the shares of {id}: {error}", { id, error });
    });
  }
};
