// Resumes chats after a server start or a takeover from another node: running chats continue with a new attempt, unless they may have
// caused crashes of the server, and interrupts are completed. Deadlines are rows of the scheduler and need no recovery (rules CH-16,
// CH-52).
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
  // The previous process did not end its recordings.
  const now = clock.now();
  await own.commit(store, (part) => interruptOpenRuns(now, part));
  const busy = await store.all(listBusyChats({}, own));
  await resumeAll(
    busy,
    ({ id }) => `chat ${id}`,
    ({ id }) => chats.ask(id, "resume", {}),
  );
};
