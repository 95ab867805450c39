// What happens when an organization switches sharing off: each of its shared workspaces is told, and anyone who had a part in it loses it
// (rule SH-12). What a crash leaves over is told at the next start.
import { log } from "#base/log.ts";
import type { Store } from "#db/engine/store.ts";
import { listForbiddenSharing } from "#db/workspaces/sharing.ts";
import type { Directory } from "../runtime/directory.ts";
import type { WorkspaceActor } from "./actor.ts";

/** For one organization, or at start for all. Resolves when every workspace has answered. */
export const endForbiddenSharing = async (
  store: Store,
  workspaces: Directory<WorkspaceActor>,
  organization_id: string | null = null,
): Promise<void> => {
  for (const { id } of await store.scan(listForbiddenSharing({ organization_id }))) {
    await workspaces.ask(id, "edit", { type: "unshare" }).catch((error) => {
      log("workspaces").error("the sharing of {id} cannot be ended: {error}", { id, error });
    });
  }
};
