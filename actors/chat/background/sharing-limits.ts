// Revokes the shares of all chats in an organization that disables sharing (rule CS-6). After a crash, the next start handles the
// remaining chats.

import { log } from "#base/log.ts";
import { listForbiddenShares } from "#db/chats/shares.ts";
import type { Store } from "#db/engine/store.ts";
import type { Directory } from "../../runtime/directory.ts";
import type { ChatActor } from "../actor.ts";

/** Handles one organization, or all at startup. Resolves when every chat has answered. */
export const revokeForbiddenChatShares = async (
  store: Store,
  chats: Directory<ChatActor>,
  organization_id: string | null = null,
): Promise<void> => {
  for (const id of await listForbiddenShares(store, organization_id)) {
    await chats.ask(id, "unshare", {}).catch((error) => {
      log("chats").error("cannot revoke the shares of chat {id}: {error}", { id, error });
    });
  }
};
