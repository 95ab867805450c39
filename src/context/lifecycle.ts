// Takes over and hands off a node's shards, including the work in progress on them. A single server takes over all shards at startup.
import { revokeForbiddenChatShares } from "#actors/chat/background/sharing-limits.ts";
import type { Services } from "#actors/runtime/service.ts";
import { lowerPortShares } from "#actors/workspace/port-limits.ts";
import { revokeForbiddenShares } from "#actors/workspace/sharing-limits.ts";
import { log } from "#base/log.ts";
import { finishesWithin } from "#base/retry.ts";
import { ALL_SHARDS, FIRST_SHARD, type Shards } from "#base/shards.ts";
import { type IsLeaving, OwnRows } from "#db/own-rows.ts";
import { sealReadableVariables } from "#db/templates/variables.ts";
import { stopForbiddenLocal } from "#domain/builds/local-limits.ts";
import type { ReadyTemplates } from "#domain/templates/starter.ts";
import { prepareIdentity } from "#domain/users/first-user.ts";
import type { ApiContext } from "#src/api/context.ts";

/** The part of the context (context.ts) that concerns shards. */
type ShardContext = ApiContext & {
  readonly services: Services;
  readonly readyTemplates: ReadyTemplates;
  readonly shards: Shards;
};

/** Maximum time to end the work of a shard, during which the shard has no owner. */
const RELEASE_TIMEOUT_MS = 3_000;

/** Prepares cluster-wide singletons before requests are answered. Called each time a node becomes the first one. */
export const prepareFirst = async ({
  store,
  clock,
  accounts,
  config,
  encryption,
  ledger,
  shards,
}: ShardContext): Promise<void> => {
  accounts.setupNeeded = await prepareIdentity({ store, clock, passwords: accounts.passwords }, config);
  await sealReadableVariables(store, encryption);
  await ledger.settleLost({ all: shards === ALL_SHARDS });
};

/** Ends everything in any shard that a limit forbids and a crash may have left. Called each time a node becomes the first one. */
export const endForbidden = async (ctx: ShardContext): Promise<void> => {
  await lowerPortShares(ctx.store, ctx.workspaces);
  await revokeForbiddenShares(ctx.store, ctx.workspaces);
  await revokeForbiddenChatShares(ctx.store, ctx.chats);
  await stopForbiddenLocal(ctx, { atStart: true });
};

/** Takes over newly acquired shards. */
export const adoptShards = async (ctx: ShardContext, shards: readonly number[]): Promise<void> => {
  const isFirst = shards.includes(FIRST_SHARD);
  if (isFirst) await prepareFirst(ctx);
  await ctx.connections.takeOver(shards);
  await ctx.services.recover(new OwnRows(shards));
  if (!isFirst) return;
  await endForbidden(ctx);
  // Not awaited, because the imports of templates can take some time.
  void ctx.readyTemplates
    .start()
    .catch((error) => log("templates").warn("could not create all ready templates: {error}", { error }));
};

/** Ends the work of shards that are about to be handed off. */
export const releaseShards = async (ctx: ShardContext, shards: readonly number[]): Promise<void> => {
  const leaving = new Set(shards);
  const isLeaving: IsLeaving = (part) => leaving.has(part);
  const close = (): void => {
    ctx.streams.release(isLeaving);
    ctx.sockets.release(isLeaving);
  };
  close();
  await finishesWithin(ctx.clock, RELEASE_TIMEOUT_MS, endWork(ctx, isLeaving));
  // Closes streams and sockets that requests in progress have opened since.
  close();
};

const endWork = async (
  { requests, services, generations, jobs }: ShardContext,
  isLeaving: IsLeaving,
): Promise<void> => {
  // After this, the database rejects writes once another node owns the shards.
  await Promise.all([requests.waitUntilDrained(isLeaving), services.release(isLeaving)]);
  // Messages that were waiting may have started generations or jobs.
  await Promise.all([generations.release(isLeaving), jobs.release(isLeaving)]);
  // Services that run on one node must be idle before the next node starts them.
  if (isLeaving(FIRST_SHARD)) await services.whenIdle();
};
