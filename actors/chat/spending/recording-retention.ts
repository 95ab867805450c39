// Deletes recorded prompts and answers of the gateway's calls when their time is over, whether new ones are recorded or not (rule GW-15).
import { log } from "#base/log.ts";
import { FIRST_PART } from "#base/parts.ts";
import { deleteOldRecordings, findOldRecording } from "#db/chats/recordings.ts";
import type { Store } from "#db/engine/store.ts";
import { readGatewaySettings } from "#db/models/gateway.ts";
import { type Chore, PeriodicChore, type PeriodicDeps } from "../../runtime/chore.ts";

const EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;

type Deps = Pick<PeriodicDeps, "clock" | "parts"> & { readonly store: Store };

export const recordingRetention = ({ store, clock, parts }: Deps): Chore =>
  new PeriodicChore({
    clock,
    parts,
    every_ms: EVERY_MS,
    work: (now, isStopped) => deleteOld(store, now, isStopped),
    failed: (error) => log("models").warn("old recordings of model calls were not deleted: {error}", { error }),
  });

const deleteOld = async (store: Store, now: number, isStopped: () => boolean): Promise<void> => {
  const { recording } = await readGatewaySettings(store);
  const old = { before: now - recording.days * DAY_MS };
  while (!isStopped() && (await store.get(findOldRecording(old))))
    await store.commit([deleteOldRecordings(old)], undefined, FIRST_PART);
};
