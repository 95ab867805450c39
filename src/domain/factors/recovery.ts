// Replaces the recovery codes with new ones (rule FA-5).
import { conflict } from "#base/errors.ts";
import { guardKey } from "#db/users/api-keys.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";
import type { KnownUser } from "../users/find.ts";
import { requireProof } from "./proof.ts";

/** Returns the codes, which are shown only once. Rejects with 409 without a second factor. */
export const renewRecoveryCodes = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
): Promise<string[]> => {
  const { factors } = ctx.accounts;
  if ((await factors.listMethods(user.id)).length === 0) throw conflict("There is no second factor to recover.");
  await requireProof(ctx, caller);
  const { codes, statements } = factors.renewRecoveryCodes(user);
  await ctx.store.commit([guardKey({ id: caller.key_id, now: ctx.clock.now() }), ...statements]);
  return codes;
};
