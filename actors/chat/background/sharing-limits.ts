// What happens when an organization switches sharing off: each of its shared chats is told, and anyone who could read along no longer can
// (rule CS-6). What a crash leaves over is told at the next start.

import { log } from "#base/log.ts";
import { listForbiddenShares } from "#db/chats/shares.ts";
import type { Store } from "#db/engine/store.ts";
import type { Directory } from "../../runtime/directory.ts";
import type { ChatActor } from "../actor.ts";

/** For one organization, or at start for all. Resolves when every chat has answered. */
export const endForbiddenChatSharing = async (
  store: Store,
  chats: Directory<ChatActor>,
  organization_id: string | null = null,
): Promise<void> => {
  for (const id of await listForbiddenShares(store, organization_id)) {
    await chats.ask(id, "unshare", {}).catch((error) => {
      log("chats").error("the sharing of chat {id} cannot be ended: {error}", { id, error });
    });
  }
};
