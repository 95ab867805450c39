// After a start of the server: every chat that was running goes on with a new attempt, every one that was being interrupted ends its
// interruption. Deadlines are rows of the scheduler and need nothing (rule CH-16).
import { log } from "#base/log.ts";
import { listBusyChats } from "#db/chats/chats.ts";
import { interruptOpenRuns } from "#db/chats/runs.ts";
import type { Store } from "#db/engine/store.ts";
import type { Directory } from "../runtime/directory.ts";
import type { ChatActor } from "./actor.ts";

export const recoverChats = async (store: Store, chats: Directory<ChatActor>, now: number): Promise<void> => {
  // Nobody ends what the last process was recording.
  await store.commit([interruptOpenRuns(now)]);
  for (const { id } of await store.all(listBusyChats())) {
    try {
      await chats.ask(id, "resume", {});
    } catch (error) {
      log("chats").error("chat {id} cannot be taken up again: {error}", { id, error });
    }
  }
};
