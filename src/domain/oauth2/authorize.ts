// Asks a user whether an application may act for them, and returns the answer to the application (rules OA-5 to OA-9). Problems with the
// application or its redirect URI are shown only to the user; all others are returned to the application.
import { conflict, forbidden, invalid } from "#base/errors.ts";
import { isUuid, linkToken, sha256 } from "#base/ids.ts";
import { findOAuth2App, type OAuth2AppRow, updateOAuth2App } from "#db/oauth2/apps.ts";
import { deleteLapsedGrants, insertOAuth2Grant, listGrantIds } from "#db/oauth2/grants.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { findKey, guardKey } from "#db/users/api-keys.ts";
import type { AuthorizationParameters } from "#schema/oauth2/grant.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";
import { requireWithinOwn } from "../users/api-key.ts";
import { createKey, GRANTED, isSignIn } from "../users/keys.ts";
import type { KeyClient } from "../users/sign-in.ts";
import { OAuth2Problem } from "./problem.ts";
import { findRedirectUriProblem, isRegistered, withParameters } from "./redirects.ts";
import { parseScopes } from "./scopes.ts";

const CODE_TTL_SECONDS = 300;
/** Maximum active grants per user. */
const MAX_GRANTS = 100;
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

/** Returns the application if its redirect URI is registered. Rejects with 400 otherwise, without a redirect. */
export const findRequestedApp = async (
  { store }: DomainContext,
  { client_id, redirect_uri }: Pick<AuthorizationParameters, "client_id" | "redirect_uri">,
): Promise<OAuth2AppRow> => {
  const app = isUuid(client_id) ? await store.get(findOAuth2App({ id: client_id.toLowerCase() })) : undefined;
  if (!app) throw invalid("This application is not registered on this server.");
  // A redirect URI that was registered earlier may no longer be valid.
  const isValid = findRedirectUriProblem(redirect_uri, app.self_registered) === undefined;
  if (!isValid || !isRegistered(redirect_uri, app.redirect_uris)) {
    throw invalid("This redirect URI is not registered for the application.");
  }
  return app;
};

/** Returns the requested scopes. Throws OAuth2Problem for mistakes of the application. */
export const resolveScopes = (ctx: DomainContext, app: OAuth2AppRow, requested: AuthorizationParameters): string[] => {
  if (requested.response_type !== "code") {
    const isMissing = requested.response_type === undefined;
    throw new OAuth2Problem(isMissing ? "invalid_request" : "unsupported_response_type", "response_type must be code.");
  }
  if (requested.response_mode !== undefined && requested.response_mode !== "query") {
    throw new OAuth2Problem("invalid_request", "response_mode must be query.");
  }
  if (requested.code_challenge_method !== "S256" || !CHALLENGE.test(requested.code_challenge ?? "")) {
    throw new OAuth2Problem("invalid_request", "PKCE with code_challenge_method S256 is required.");
  }
  requireOwnResource(ctx, requested.resource);
  return parseScopes(requested.scope, app.scopes);
};

/**
 * Checks the requested resource (RFC 8707), if any: it must be a URL with this server's origin and without a fragment, because tokens are
 * valid only here. Throws `invalid_target`.
 */
export const requireOwnResource = (
  { accessUrl }: Pick<DomainContext, "accessUrl">,
  resource: string | undefined,
): void => {
  const isOwnServer =
    resource === undefined ||
    (URL.canParse(resource) && !resource.includes("#") && new URL(resource).origin === accessUrl.origin);
  if (!isOwnServer) throw new OAuth2Problem("invalid_target", "resource must be an address of this server.");
};

/** Returns the redirect to the application with the result; `iss` identifies this server (RFC 9207). */
export const answerTo = (
  { accessUrl }: DomainContext,
  { redirect_uri, state }: AuthorizationParameters,
  values: Readonly<Record<string, string>>,
): string => withParameters(redirect_uri, { ...values, state, iss: accessUrl.origin });

export const toProblemRedirect = (
  ctx: DomainContext,
  requested: AuthorizationParameters,
  problem: OAuth2Problem,
): string => answerTo(ctx, requested, { error: problem.code, error_description: problem.message });

type Approval = { readonly app: OAuth2AppRow; readonly scopes: readonly string[]; readonly seen: KeyClient };

/**
 * Returns the code. The key of the grant is created now, so that everything that revokes a user's keys also revokes the grant. Its secret
 * is given to no one, and it expires with the code. Rejects with 403 unless the caller's key is a sign-in, and with 409 when the user has
 * too many grants.
 */
export const approve = async (
  ctx: DomainContext,
  caller: UserCaller,
  requested: AuthorizationParameters,
  { app, scopes, seen }: Approval,
): Promise<string> => {
  const { store, clock } = ctx;
  const now = clock.now();
  const ownKey = await store.get(findKey({ id: caller.key_id }));
  if (!ownKey || !isSignIn(ownKey)) throw forbidden("You must be signed in. API tokens cannot approve access.");
  const allowed_addresses = await requireWithinOwn(ctx, caller, { scopes, allowed_addresses: [] });
  const user_id = caller.user_id;
  await store.commit([deleteLapsedGrants({ user_id, now })]);
  if ((await store.all(listGrantIds({ user_id }))).length >= MAX_GRANTS) {
    throw conflict(`You have granted access ${MAX_GRANTS} times. Revoke what you do not need.`);
  }
  const { id, statements, row } = createKey({
    user_id,
    login_type: GRANTED,
    scopes,
    allowed_addresses,
    lifetime_seconds: CODE_TTL_SECONDS,
    seen,
    now,
  });
  const code = linkToken();
  await store.commit([
    guardKey({ id: caller.key_id, now }),
    // The application may have been deleted in the meantime.
    updateOAuth2App(app.id, { updated_at: now }, { expect: 1 }),
    ...statements,
    insertOAuth2Grant({
      key_id: id,
      app_id: app.id,
      user_id,
      scopes: [...scopes],
      redirect_uri: requested.redirect_uri,
      code_hash: sha256(code),
      code_challenge: requested.code_challenge ?? "",
      code_expires_at: row.expires_at,
      created_at: now,
      updated_at: now,
    }),
    insertAudit({
      now,
      action: "create",
      resource_type: "api_key",
      target: app.name,
      additional: { key_id: id, application: app.id },
      after: row,
    }),
  ]);
  return code;
};
