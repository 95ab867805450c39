// Authenticates the application at the token endpoint (RFC 6749 2.3): with basic authentication, with form fields, or by its ID alone if it
// uses PKCE (rule OA-10).
import { isSameDigest, isUuid, sha256 } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { findOAuth2App, listOAuth2Secrets, type OAuth2AppRow, updateOAuth2Secret } from "#db/oauth2/apps.ts";
import type { DomainContext } from "../context.ts";
import { OAuth2Problem } from "./problem.ts";

const TOUCH_INTERVAL_MS = 3_600_000;

/** The credentials a client has sent. */
export type ClientProof = { readonly client_id: string; readonly secret: string | undefined };
export type Client = {
  readonly app: OAuth2AppRow;
  /** Statements that record the use of its secret. */
  readonly noted: readonly Statement[];
};

/** Throws `invalid_client`, with the same message for every reason. */
export const findClient = async (ctx: DomainContext, { client_id, secret }: ClientProof): Promise<Client> => {
  const app = isUuid(client_id) ? await ctx.store.get(findOAuth2App({ id: client_id.toLowerCase() })) : undefined;
  if (!app) throw invalidClient();
  if (app.auth_method === "none") {
    if (secret !== undefined && secret !== "") throw invalidClient();
    return { app, noted: [] };
  }
  const digest = sha256(secret ?? "");
  const secrets = await ctx.store.all(listOAuth2Secrets({ app_id: app.id }));
  const usedSecret = secrets.find(({ secret_hash }) => isSameDigest(secret_hash, digest));
  if (!usedSecret) throw invalidClient();
  const now = ctx.clock.now();
  const isNoted = usedSecret.last_used_at !== null && now - usedSecret.last_used_at < TOUCH_INTERVAL_MS;
  return { app, noted: isNoted ? [] : [updateOAuth2Secret(usedSecret.id, { last_used_at: now })] };
};

const invalidClient = (): OAuth2Problem =>
  new OAuth2Problem("invalid_client", "The client is unknown, or its secret is wrong.");
