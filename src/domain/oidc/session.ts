// What a sign-in at a provider leaves for its session: the tokens with which the provider is asked whether the person still counts, and with
// which the session ends there, too (rules OI-13, OI-14). Only for people who sign in at the provider alone.

import { log } from "#base/log.ts";
import type { Statement } from "#db/engine/sql.ts";
import { findOidcSession, insertOidcSession, type OidcSession } from "#db/users/oidc-sessions.ts";
import type { User } from "#db/users/users.ts";
import type { Completed } from "#src/authentication/oidc.ts";
import type { DomainContext } from "../context.ts";
import type { Provider } from "./identity.ts";

/** An id token with thousands of groups is not kept: the provider then asks before it signs the person out. */
const MAX_ID_TOKEN = 16_384;

export type KeptTokens = { readonly subject: string; readonly id_token: string; readonly refresh_token?: string };

type Sealing = Pick<DomainContext, "encryption">;

const toSealContext = (key_id: string): string => `oidc_session:${key_id}`;

export const openTokens = ({ encryption }: Sealing, { key_id, sealed_tokens }: OidcSession): KeptTokens =>
  JSON.parse(encryption.open(sealed_tokens, toSealContext(key_id))) as KeptTokens;

/** The columns that keep what the provider gave. */
export const tokenColumns = (
  { encryption }: Sealing,
  key_id: string,
  { claims, id_token, refresh_token }: Completed,
): Pick<OidcSession, "sealed_tokens" | "has_refresh_token"> => {
  const kept: KeptTokens = {
    subject: claims.sub,
    id_token: id_token.length <= MAX_ID_TOKEN ? id_token : "",
    ...(refresh_token === undefined ? {} : { refresh_token }),
  };
  return {
    sealed_tokens: encryption.seal(JSON.stringify(kept), toSealContext(key_id)),
    has_refresh_token: refresh_token !== undefined,
  };
};

/** Keeps the tokens of a session, for the batch that makes it. */
export const keptSession = (
  ctx: DomainContext,
  { setting }: Provider,
  user: Pick<User, "login_type">,
  key_id: string,
  completed: Completed,
): Statement[] =>
  user.login_type === "oidc" && (completed.refresh_token !== undefined || setting.sign_out_at_provider === true)
    ? [
        insertOidcSession({
          key_id,
          provider: setting.id,
          checked_at: ctx.clock.now(),
          ...tokenColumns(ctx, key_id, completed),
        }),
      ]
    : [];

/** Returns where the browser ends the session at the provider; undefined when nothing is to be ended there, or it cannot be asked. */
export const providerSignOut = async (
  ctx: DomainContext,
  session: OidcSession | undefined,
): Promise<URL | undefined> => {
  if (!session) return undefined;
  const client = ctx.oidc.find(session.provider);
  if (client?.setting.sign_out_at_provider !== true) return undefined;
  return client.endSession(openTokens(ctx, session).id_token, new URL("/login", ctx.accessUrl)).catch((error) => {
    log("http").warn("a session was not ended at its provider: {error}", { error });
    return undefined;
  });
};

/** Reads what is kept of a session; it ends with the key. */
export const loadOidcSession = (ctx: Pick<DomainContext, "store">, key_id: string): Promise<OidcSession | undefined> =>
  ctx.store.get(findOidcSession({ key_id }));
