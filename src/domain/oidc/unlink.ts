// Removes an account's links so that another identity with its address can be linked, after a provider was replaced or gave the person a
// new identity.
import { conflict, forbidden } from "#base/errors.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { deleteSessionsByUser, guardKey } from "#db/users/api-keys.ts";
import { deleteOidcLinksByUser, findAnyOidcLink } from "#db/users/oidc-links.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canResetPassword } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { requireProof } from "../factors/proof.ts";
import type { KnownUser } from "../users/find.ts";

/** Removes the links and revokes the user's sessions. Rejects with 403, or 409 when there is no link. */
export const removeOidcLinks = async (ctx: DomainContext, user: KnownUser, caller: UserCaller): Promise<void> => {
  if (!canResetPassword(caller, user)) throw forbidden("You may not change how this user signs in.");
  if (user.id === caller.user_id) throw forbidden("You cannot remove your own sign-in link.");
  await requireProof(ctx, caller);
  const link = await ctx.store.get(findAnyOidcLink({ user_id: user.id }));
  if (!link) throw conflict("This user has no sign-in link.");
  const { id: user_id, username: target } = user;
  const now = ctx.clock.now();
  await ctx.store.commit([
    guardKey({ id: caller.key_id, now }),
    deleteOidcLinksByUser(user_id),
    deleteSessionsByUser({ user_id, except: "" }),
    insertAudit({
      now,
      action: "delete",
      resource_type: "oidc_link",
      resource_id: user_id,
      target,
      before: { issuer: link.issuer, user_id },
    }),
  ]);
  ctx.topics.publish("key_gone", user_id, {});
};
