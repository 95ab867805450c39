// Records that a user has confirmed their identity (rule FA-9).
import type { Statement } from "#db/engine/sql.ts";
import { guardKey } from "#db/users/api-keys.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";
import { type ProvenFactors, recordProof } from "../users/sign-in.ts";
import { requireOwnKey } from "./proof.ts";

/** `used`: statements that mark the proof as used. */
export const confirmCaller = async (
  ctx: DomainContext,
  caller: UserCaller,
  provenFactors: ProvenFactors,
  used: readonly Statement[],
): Promise<void> => {
  await requireOwnKey(ctx, caller);
  const now = ctx.clock.now();
  await ctx.store.commit([
    guardKey({ id: caller.key_id, now }),
    ...used,
    recordProof(caller.key_id, provenFactors, now),
  ]);
};
