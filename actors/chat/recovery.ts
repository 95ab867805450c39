// After a start of the server, or when parts come from another node: every chat that was running continues with a new attempt, every one that was being interrupted ends its
// interruption. Deadlines are rows of the scheduler and need nothing (rule CH-16).
import type { Clock } from "#base/clock.ts";
import type { PartNumbers } from "#base/parts.ts";
import { listBusyChats } from "#db/chats/chats.ts";
import { interruptOpenRuns, interruptOpenRunsInPart } from "#db/chats/runs.ts";
import type { Store } from "#db/engine/store.ts";
import type { Directory } from "../runtime/directory.ts";
import { takeUp } from "../runtime/take-up.ts";
import type { ChatActor } from "./actor.ts";

type Parts = { readonly store: Store; readonly chats: Directory<ChatActor>; readonly clock: Pick<Clock, "now"> };

/** Of these parts; undefined: of all. */
export const recoverChats = async ({ store, chats, clock }: Parts, parts?: PartNumbers): Promise<void> => {
  // Nobody ends what the last process was recording.
  const now = clock.now();
  if (parts === undefined) await store.commit([interruptOpenRuns(now)]);
  else await Promise.all(parts.map((part) => store.commit([interruptOpenRunsInPart(part, now)], undefined, part)));
  const busy = await store.all(listBusyChats(parts));
  await takeUp(
    busy,
    ({ id }) => `chat ${id}`,
    ({ id }) => chats.ask(id, "resume", {}),
  );
};
