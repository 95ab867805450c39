// Admits a person who signed in at a provider, and returns what must be written: the user, their link and the grants from the provider's
// groups. Nothing is written here; the changes go into the batch of the session, which waits for a second factor if required (rule OI-9).
import type { Statement } from "#db/engine/sql.ts";
import type { User } from "#db/users/users.ts";
import type { FactorMethod } from "#schema/users/second-factor.ts";
import type { DomainContext } from "../context.ts";
import type { Identity, Provider } from "./identity.ts";
import { applyMapping } from "./mapping.ts";
import { findOrCreatePerson } from "./person.ts";

export type AdmittedPerson = {
  readonly user: User;
  /** For the batch that creates the session. */
  readonly changes: readonly Statement[];
  /** If not empty, a second factor is required before the session is created. */
  readonly methods: FactorMethod[];
  /** Whether the changes revoke the user's keys. */
  readonly revokesKeys: boolean;
};

/** Throws the reason for rejecting the person. `invitation` is the hash of the invitation token they came with. */
export const admitPerson = async (
  ctx: DomainContext,
  provider: Provider,
  identity: Identity,
  invitation?: string,
): Promise<AdmittedPerson> => {
  const person = await findOrCreatePerson(ctx, provider, identity, invitation);
  const { user, statements, revokesKeys = false } = person;
  const changes = [...statements, ...(await applyMapping(ctx, provider, identity, person))];
  ctx.oidc.logRemarks(provider, identity);
  const methods = user.login_type === "password" ? await ctx.accounts.factors.listMethods(user.id) : [];
  return { user, changes, methods, revokesKeys };
};
