// Resumes chats after a server start or a takeover from another node: running chats continue with a new attempt, unless they may be what
// ends the server, and interrupts are completed. Deadlines are rows of the scheduler and need no recovery (rules CH-16, CH-52).
import type { Clock } from "#base/clock.ts";
import { listBusyChats } from "#db/chats/chats.ts";
import { interruptOpenRuns } from "#db/chats/runs.ts";
import type { Store } from "#db/engine/store.ts";
import type { OwnRows } from "#db/own-rows.ts";
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { Directory } from "../runtime/directory.ts";
import { resumeAll } from "../runtime/resume-work.ts";
import type { ChatActor } from "./actor.ts";
import type { ChatState } from "./machine/chat-state.ts";

/** After this many ends of the server in a row, a turn is not continued: it may be what ends the server. */
export const MAX_CRASHES = 2;

export const CRASHED: ChatError = {
  kind: "generic",
  message:
    "The server stopped twice while it worked on this message, so it did not try a third time. Send the message again to retry, with smaller attachments if it has large ones.",
  retryable: true,
};

/** Returns the count with one more crash if an attempt of the turn has begun since the last one; undefined otherwise. */
export const countCrash = ({
  status,
  history_version,
  generation_attempt: attempt,
  crashes,
}: Pick<ChatState, "status" | "history_version" | "generation_attempt" | "crashes">):
  | NonNullable<ChatState["crashes"]>
  | undefined => {
  const known = crashes?.history_version === history_version ? crashes : { attempt: 0, count: 0 };
  if (status !== "running" || attempt <= known.attempt) return undefined;
  return { history_version, attempt, count: known.count + 1 };
};

type RecoveryDeps = { readonly store: Store; readonly chats: Directory<ChatActor>; readonly clock: Pick<Clock, "now"> };

/** Resumes the busy chats of own rows. */
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
