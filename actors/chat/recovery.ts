// Resumes chats after a server start or a takeover from another node: running chats continue with a new attempt, unless their turns may
// have crashed the server, and interrupts are completed (rules CH-16, CH-52). Deadlines are timers in the database and need no recovery.
import type { Clock } from "#base/clock.ts";
import { listBusyChats } from "#db/chats/chats.ts";
import { interruptOpenRuns } from "#db/chats/runs.ts";
import type { Store } from "#db/engine/store.ts";
import type { OwnRows } from "#db/own-rows.ts";
import type { Directory } from "../runtime/directory.ts";
import { resumeAll } from "../runtime/resume-work.ts";
import type { ChatActor } from "./actor.ts";

type RecoveryDeps = { readonly store: Store; readonly chats: Directory<ChatActor>; readonly clock: Pick<Clock, "now"> };

/** Resumes the busy chats that this node owns. */
export const recoverChats = async ({ store, chats, clock }: RecoveryDeps, own: OwnRows): Promise<void> => {
  // The previous process may not have ended its recordings of model calls.
  const now = clock.now();
  await own.commit(store, (part) => interruptOpenRuns(now, part));
  const busy = await store.all(listBusyChats({}, own));
  await resumeAll(
    busy,
    ({ id }) => `chat ${id}`,
    ({ id }) => chats.ask(id, "resume", {}),
  );
};
