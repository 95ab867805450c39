// New recovery codes in the place of the old ones (rule FA-5).
import { conflict } from "#base/errors.ts";
import { isKeyStill } from "#db/users/api-keys.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";
import type { KnownUser } from "../users/find.ts";
import { mustBeProved } from "./proof.ts";

/** The codes, shown this once. 409 without a second factor. */
export const renewRecoveryCodes = async (
  ctx: DomainContext,
  user: KnownUser,
  caller: UserCaller,
): Promise<string[]> => {
  const { factors } = ctx.accounts;
  if ((await factors.methodsOf(user.id)).length === 0) throw conflict("There is no second factor to recover.");
  await mustBeProved(ctx, caller);
  const { codes, statements } = factors.renewRecoveryCodes(user);
  await ctx.store.commit([isKeyStill({ id: caller.key_id, now: ctx.clock.now() }), ...statements]);
  return codes;
};
