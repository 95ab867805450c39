// Who has signed in at a provider, and what is to be written for it: the user, their link and what the provider's groups give them. Nothing
// is written here: it goes into the batch of the session, which waits for a second factor where there is one (rule OI-9).
import type { Statement } from "#db/engine/sql.ts";
import type { User } from "#db/users/users.ts";
import type { FactorMethod } from "#schema/users/second-factor.ts";
import type { DomainContext } from "../context.ts";
import type { Identity, Provider } from "./identity.ts";
import { mapped } from "./mapping.ts";
import { findOrCreatePerson } from "./person.ts";

export type Admitted = {
  readonly user: User;
  /** For the batch of the session that is made. */
  readonly changes: readonly Statement[];
  /** Not empty: a second factor is asked for before the session is made. */
  readonly methods: FactorMethod[];
};

/** Throws what refuses the person. `invitation`: the hash of the token that they come in with. */
export const admitPerson = async (
  ctx: DomainContext,
  provider: Provider,
  identity: Identity,
  invitation?: string,
): Promise<Admitted> => {
  const person = await findOrCreatePerson(ctx, provider, identity, invitation);
  const { user, statements } = person;
  const changes = [...statements, ...(await mapped(ctx, provider, identity, person))];
  ctx.oidc.logRemarks(provider, identity);
  const methods = user.login_type === "password" ? await ctx.accounts.factors.methodsOf(user.id) : [];
  return { user, changes, methods };
};
