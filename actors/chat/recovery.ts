// Resumes chats after a server start, or when shards arrive from another node: running chats continue with a new attempt, and interrupts
// are completed. Deadlines are rows of the scheduler and need no recovery (rule CH-16).
import type { Clock } from "#base/clock.ts";
import type { ShardNumbers } from "#base/shards.ts";
import { listBusyChats } from "#db/chats/chats.ts";
import { interruptOpenRuns, interruptOpenRunsInShard } from "#db/chats/runs.ts";
import type { Store } from "#db/engine/store.ts";
import type { Directory } from "../runtime/directory.ts";
import { resumeAll } from "../runtime/resume-work.ts";
import type { ChatActor } from "./actor.ts";

type RecoveryDeps = { readonly store: Store; readonly chats: Directory<ChatActor>; readonly clock: Pick<Clock, "now"> };

/** Resumes the chats of these shards, or of all if undefined. */
export const recoverChats = async ({ store, chats, clock }: RecoveryDeps, shards?: ShardNumbers): Promise<void> => {
  // The previous process did not end its recordings.
  const now = clock.now();
  if (shards === undefined) await store.commit([interruptOpenRuns(now)]);
  else await Promise.all(shards.map((shard) => store.commit([interruptOpenRunsInShard(shard, now)], undefined, shard)));
  const busy = await store.all(listBusyChats(shards));
  await resumeAll(
    busy,
    ({ id }) => `chat ${id}`,
    ({ id }) => chats.ask(id, "resume", {}),
  );
};
