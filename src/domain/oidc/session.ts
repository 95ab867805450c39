// Stores the provider's tokens with a session, to check whether the person is still active and to end the session at the provider too
// (rules OI-13, OI-14).

import { log } from "#base/log.ts";
import type { Statement } from "#db/engine/sql.ts";
import { findOidcSession, insertOidcSession, type OidcSession } from "#db/users/oidc-sessions.ts";
import type { SignInResult } from "#src/authentication/oidc.ts";
import type { DomainContext } from "../context.ts";
import type { Provider } from "./identity.ts";

/** Larger ID tokens, with thousands of groups, are not stored; the provider then asks the person before it signs them out. */
const MAX_ID_TOKEN_CHARS = 16_384;

export type StoredTokens = { readonly subject: string; readonly id_token: string; readonly refresh_token?: string };

type Sealing = Pick<DomainContext, "encryption">;

const toSealContext = (key_id: string): string => `oidc_session:${key_id}`;

export const openTokens = ({ encryption }: Sealing, { key_id, sealed_tokens }: OidcSession): StoredTokens =>
  JSON.parse(encryption.open(sealed_tokens, toSealContext(key_id))) as StoredTokens;

/** Returns the columns that store the provider's tokens. */
export const toTokenColumns = (
  { encryption }: Sealing,
  key_id: string,
  { claims, id_token, refresh_token }: SignInResult,
): Pick<OidcSession, "sealed_tokens" | "has_refresh_token"> => {
  const tokens: StoredTokens = {
    subject: claims.sub,
    id_token: id_token.length <= MAX_ID_TOKEN_CHARS ? id_token : "",
    ...(refresh_token === undefined ? {} : { refresh_token }),
  };
  return {
    sealed_tokens: encryption.seal(JSON.stringify(tokens), toSealContext(key_id)),
    has_refresh_token: refresh_token !== undefined,
  };
};

/** Returns the statements that store a session's tokens, for the batch that creates it. */
export const storeOidcSession = (
  ctx: DomainContext,
  { setting }: Provider,
  key_id: string,
  completed: SignInResult,
): Statement[] =>
  completed.refresh_token !== undefined || setting.sign_out_at_provider === true
    ? [
        insertOidcSession({
          key_id,
          provider: setting.id,
          checked_at: ctx.clock.now(),
          ...toTokenColumns(ctx, key_id, completed),
        }),
      ]
    : [];

/** Returns the URL that ends the session at the provider; undefined if there is nothing to end or the provider cannot be reached. */
export const findProviderSignOut = async (
  ctx: DomainContext,
  session: OidcSession | undefined,
): Promise<URL | undefined> => {
  if (!session) return undefined;
  const client = ctx.oidc.find(session.provider);
  if (client?.setting.sign_out_at_provider !== true) return undefined;
  return client.toEndSessionUrl(openTokens(ctx, session).id_token, new URL("/login", ctx.accessUrl)).catch((error) => {
    log("http").warn("cannot end a session at its provider: {error}", { error });
    return undefined;
  });
};

/** Returns the stored tokens of a session; they are deleted with the key. */
export const loadOidcSession = (ctx: Pick<DomainContext, "store">, key_id: string): Promise<OidcSession | undefined> =>
  ctx.store.get(findOidcSession({ key_id }));
