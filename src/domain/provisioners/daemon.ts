// The row of a worker: created when it first connects, identified by its name.
import { AppError } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { CommitError } from "#db/engine/store.ts";
import {
  findProvisionerDaemon,
  insertProvisionerDaemon,
  type ProvisionerDaemonRow,
  updateProvisionerDaemon,
} from "#db/templates/provisioners.ts";
import type { DomainContext } from "../context.ts";

export type WantedDaemon = Omit<ProvisionerDaemonRow, "id" | "created_at" | "last_seen_at">;

/** Why a worker is refused that has another key than the connected worker with its name. */
export const NAME_IS_TAKEN = "A connected worker with another key has this name.";

/** Rejects with 409 while another key holds the name: a key must not take the jobs of workers with other keys (rule PV-12). */
export const requireName = async (
  { store, workers }: Pick<DomainContext, "store" | "workers">,
  { organization_id, name, key_id }: Pick<WantedDaemon, "organization_id" | "name" | "key_id">,
): Promise<void> => {
  const existing = await store.get(findProvisionerDaemon({ organization_id, name }));
  const holder = existing && workers.find(existing.id);
  if (!holder || holder.facts.key_id === key_id) return;
  const detail = "Choose another name, or stop that worker first.";
  throw new AppError("conflict", NAME_IS_TAKEN, { detail });
};

/** Records that the worker is connected; returns its ID, which stays the same as long as its name does. */
export const registerDaemon = async (ctx: DomainContext, daemon: WantedDaemon): Promise<string> => {
  const now = ctx.clock.now();
  for (let triesLeft = 2; ; triesLeft--) {
    const { organization_id, name } = daemon;
    const existing = await ctx.store.get(findProvisionerDaemon({ organization_id, name }));
    const row = { ...daemon, last_seen_at: now };
    try {
      if (existing) {
        await ctx.store.commit([updateProvisionerDaemon(existing.id, row, { expect: 1 })]);
        return existing.id;
      }
      const id = uuid();
      await ctx.store.commit([insertProvisionerDaemon({ ...row, id, created_at: now })]);
      return id;
    } catch (error) {
      // Two connections with the same name raced, and the other one was first.
      if (!(error instanceof CommitError) || triesLeft === 0) throw error;
    }
  }
};

/** Records when the worker was last seen. Never rejects. */
export const recordLastSeen = async (
  { store, clock }: DomainContext,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<void> => {
  await store.commit([updateProvisionerDaemon(id, { last_seen_at: clock.now() })]).catch((error) => {
    log("provisioners").debug("cannot record that worker {name} has disconnected: {error}", { name, error });
  });
};
