// Who has signed in at a provider, and what is to be written for it: the user, their link and what the provider's groups give them.
import type { Statement } from "#db/engine/sql.ts";
import type { User } from "#db/users/users.ts";
import type { FactorMethod } from "#schema/users/second-factor.ts";
import type { Claims, OidcClient } from "#src/authentication/oidc.ts";
import { stopForbiddenLocal } from "../builds/local-limits.ts";
import type { DomainContext } from "../context.ts";
import { mapped } from "./mapping.ts";
import { personOf } from "./person.ts";

export type Admitted = {
  readonly user: User;
  /** For the batch of the session that is made. */
  readonly changes: readonly Statement[];
  /** Not empty: a second factor is asked for first; the changes are written already. */
  readonly methods: FactorMethod[];
};

/** Throws what refuses the person. */
export const admitPerson = async (ctx: DomainContext, client: OidcClient, claims: Claims): Promise<Admitted> => {
  const person = await personOf(ctx, client, claims);
  const { user, statements } = person;
  const changes = [...statements, ...(await mapped(ctx, client.setting, claims, person))];
  const methods = user.login_type === "password" ? await ctx.accounts.factors.methodsOf(user.id) : [];
  if (methods.length === 0) return { user, changes, methods };
  await ctx.store.commit(changes);
  await stopForbiddenLocal(ctx, user.id);
  return { user, changes: [], methods };
};
